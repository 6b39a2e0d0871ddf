use std::{fs, path::Path};

use super::*;

fn flag(key: &str, value: &str) -> Flag {
    Flag { key: key.into(), value: value.into(), typed: "--set".into() }
}

fn environment(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn read_all(layers: Layers) -> Result<(u64, Duration, bool, Vec<Setting>), Invalid> {
    let mut keys = Keys::new(layers);
    let pages = keys.number("reader.pages", 10, 1..=200, "entries a page");
    let range = Duration::from_secs(1)..=Duration::from_secs(60);
    let wait = keys.duration("reader.wait", Duration::from_secs(5), range, "how long to wait");
    let live = keys.flag("reader.live", true, "whether to stream");
    keys.secret("reader.key", String::new(), "text", "a secret", |text| Some(text.to_owned()));
    Ok((pages, wait, live, keys.finish()?))
}

fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("freshet.toml");
    fs::write(&path, text).unwrap();
    (dir, path)
}

#[test]
fn the_strongest_layer_wins_and_says_where_it_is_from() {
    let (_dir, path) = file("[reader]\npages = 20\nwait = \"7s\"\nlive = false\n");
    let env = environment(&[("FRESHET_READER_PAGES", "30"), ("FRESHET_READER_WAIT", "9s"), ("HOME", "/")]);
    let layers = Layers::load(Some(&path), env, vec![flag("reader.pages", "40")]).unwrap();
    let (pages, wait, live, settings) = read_all(layers).unwrap();
    assert_eq!((pages, wait, live), (40, Duration::from_secs(9), false));
    let origins: Vec<_> = settings.iter().map(|setting| setting.origin.to_string()).collect();
    let file = format!("file {}", path.display());
    assert_eq!(origins, ["flag --set", "environment FRESHET_READER_WAIT", &file, "default"]);
}

#[test]
fn all_problems_are_told_at_once() {
    let (_dir, path) = file("reader.pages = 0\nreader.wiat = \"5s\"\n");
    let env = environment(&[("FRESHET_READER_WAIT", "1h"), ("FRESHET_READRE_LIVE", "yes")]);
    let layers = Layers::load(Some(&path), env, vec![flag("reader.live", "maybe")]).unwrap();
    let told = read_all(layers).unwrap_err().to_string();
    assert!(told.starts_with("the config has 5 problems:"), "{told}");
    for part in [
        "reader.pages = \"0\"",
        "must be a whole number from 1 to 200",
        "reader.wait = \"1h\" (by environment FRESHET_READER_WAIT): must be a time span from 1s to 1m",
        "reader.live = \"maybe\" (by flag --set): must be true or false",
        "reader.wiat = \"5s\"",
        "did you mean reader.wait?",
        "environment FRESHET_READRE_LIVE: there is no such key",
    ] {
        assert!(told.contains(part), "{part:?} is missing in:\n{told}");
    }
}

#[test]
fn a_secret_is_never_shown() {
    let layers = Layers::load(None, [], vec![flag("reader.key", "hunter42")]).unwrap();
    let (.., settings) = read_all(layers).unwrap();
    assert!(!format!("{settings:?}").contains("hunter42"));

    let mut keys = Keys::new(Layers::load(None, [], vec![flag("reader.key", "hunter42")]).unwrap());
    keys.secret("reader.key", (), "two words", "a secret", |_| None);
    let told = keys.finish().unwrap_err().to_string();
    assert!(told.contains("reader.key = (redacted)") && !told.contains("hunter42"), "{told}");
}

#[test]
fn a_missing_or_broken_file_is_named() {
    let missing = Layers::load(Some(Path::new("no/such.toml")), [], vec![]).unwrap_err().to_string();
    assert!(missing.contains("no/such.toml"), "{missing}");
    let (_dir, path) = file("pages = = 1");
    let broken = Layers::load(Some(&path), [], vec![]).unwrap_err().to_string();
    assert!(broken.contains("not valid TOML") && broken.contains("line 1"), "{broken}");
}

#[test]
fn durations_are_written_as_they_are_read() {
    for text in ["1ms", "250ms", "5s", "10m", "2h", "7d", "1500ms"] {
        assert_eq!(duration_text(parse_duration(text).unwrap()), text);
    }
    for text in ["", "5", "s", "-1s", "5 s", "1.5s", "99999999999999999999d"] {
        assert_eq!(parse_duration(text), None, "{text:?}");
    }
}

#[test]
fn a_url_is_shown_without_its_password() {
    for (url, shown) in [
        ("postgres://ada:hunter42@db:5432/freshet", "postgres://ada:(redacted)@db:5432/freshet"),
        ("redis://:hunter42@cache/0", "redis://:(redacted)@cache/0"),
        ("postgres://ada:hun@ter42@db/x?a=b@c", "postgres://ada:(redacted)@db/x?a=b@c"),
        ("kafka://a:9092,b:9092", "kafka://a:9092,b:9092"),
        ("sqlite:///var/lib/freshet.db", "sqlite:///var/lib/freshet.db"),
    ] {
        assert_eq!(without_password(url), shown);
    }
    let read = |parse: fn(&str) -> Option<()>| {
        let layers = Layers::load(None, [], vec![flag("reader.store", "redis://:hunter42@cache")]).unwrap();
        let mut keys = Keys::new(layers);
        keys.url("reader.store", ((), "memory://".into()), "redis://", "where", parse);
        format!("{:?}", keys.finish())
    };
    for told in [read(|_| Some(())), read(|_| None)] {
        assert!(told.contains("redis://:(redacted)@cache") && !told.contains("hunter42"), "{told}");
    }
}
