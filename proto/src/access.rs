//! Who may call a method: the rule that its .proto file states, as the servers check it.

/// What a caller's token must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A user token must belong to the person in the named field of the request.
    ActsFor(&'static str),
    /// Any valid token will do.
    Anyone,
    /// Only services may call.
    Service,
}

/// A request whose method has a rule. The impls are generated from the .proto files' options.
pub trait Access {
    /// The method's rule.
    const RULE: Rule;

    /// The person whom the request acts for, where the rule names one.
    fn subject(&self) -> Option<&str>;
}

include!(concat!(env!("OUT_DIR"), "/access.rs"));
