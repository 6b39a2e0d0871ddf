//! From where a person comes.

use std::net::IpAddr;

use ::http::HeaderMap;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address of whoever made a request that came through so many proxies. Each of ours adds the address that it was called
/// from at the end of the header; what stands before that is only what somebody says. Where the header is shorter than it
/// must be, a proxy is missing or does not add to it: then it is the address that we know.
pub(crate) fn of_person(headers: &HeaderMap, peer: IpAddr, proxies: usize) -> IpAddr {
    let lines = headers.get_all(FORWARDED_FOR).into_iter().filter_map(|line| line.to_str().ok());
    let named: Vec<_> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
    let of_ours = proxies.checked_sub(1).and_then(|back| named.iter().rev().nth(back));
    of_ours.and_then(|text| text.parse().ok()).unwrap_or(peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(lines: &[&str], proxies: usize) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, line.parse().unwrap());
        }
        of_person(&headers, "192.0.2.1".parse().unwrap(), proxies).to_string()
    }

    #[test]
    fn only_what_our_own_proxies_say_counts() {
        assert_eq!(person(&[], 0), "192.0.2.1");
        assert_eq!(person(&["198.51.100.7"], 0), "192.0.2.1", "nobody stands before us: it is made up");
        assert_eq!(person(&["203.0.113.9, 198.51.100.7"], 1), "198.51.100.7");
        assert_eq!(person(&["203.0.113.9, 198.51.100.7", "2001:db8::1"], 2), "198.51.100.7");
        assert_eq!(person(&[], 1), "192.0.2.1");
        assert_eq!(person(&["198.51.100.7"], 2), "192.0.2.1");
        assert_eq!(person(&["unknown"], 1), "192.0.2.1");
    }
}
