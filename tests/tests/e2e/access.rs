//! Who may call what: walked over every method that the descriptors name.

use bytes::Bytes;
use chassis::{Reason, token::Caller};
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, Value, prost::Message as _};
use tests::{Sandbox, grpc::call_raw};

/// The rule that a method's option states.
#[derive(Debug, PartialEq)]
enum Rule {
    ActsFor(String),
    Anyone,
    Service,
}

fn methods() -> Vec<MethodDescriptor> {
    let pool = DescriptorPool::decode(proto::DESCRIPTORS).expect("descriptors");
    pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()).collect()
}

fn rule_of(method: &MethodDescriptor) -> Rule {
    let pool = method.parent_pool();
    let option = pool.get_extension_by_name("freshet.auth.v1.access").expect("the access option");
    let options = method.options();
    assert!(options.has_extension(&option), "{} has no access rule", method.full_name());
    let access = options.get_extension(&option);
    let access = access.as_message().expect("a message");
    match ["acts_for", "anyone", "service"].map(|field| access.has_field_by_name(field)) {
        [true, false, false] => match &*access.get_field_by_name("acts_for").expect("a field") {
            Value::String(field) => Rule::ActsFor(field.clone()),
            other => panic!("{}: acts_for is {other:?}", method.full_name()),
        },
        [false, true, false] => Rule::Anyone,
        [false, false, true] => Rule::Service,
        other => panic!("{} has no single rule: {other:?}", method.full_name()),
    }
}

fn path_of(method: &MethodDescriptor) -> String {
    format!("/{}/{}", method.parent_service().full_name(), method.name())
}

/// A request that acts for this person, and is otherwise empty.
fn request_for(method: &MethodDescriptor, rule: &Rule, person: &str) -> Bytes {
    let mut message = DynamicMessage::new(method.input());
    if let Rule::ActsFor(field) = rule {
        message.set_field_by_name(field, Value::String(person.to_owned()));
    }
    message.encode_to_vec().into()
}

#[test]
fn every_method_of_every_service_has_one_rule() {
    let methods = methods();
    assert!(methods.len() >= 8, "only {} methods", methods.len());
    for method in methods {
        rule_of(&method);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_checks_its_rule_before_anything_else() {
    let world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    let adas_token = world.token(&Caller::User(ada.id));
    let services_token = world.token(&Caller::Service("tests".into()));
    for method in methods() {
        let (rule, path) = (rule_of(&method), path_of(&method));
        let ranking = method.parent_service().full_name().starts_with("freshet.ranking");
        let address = if ranking { world.rankings()[0] } else { world.timelines()[0] };
        let reason = async |token: Option<&str>, person: &str| {
            let request = request_for(&method, &rule, person);
            call_raw(address, &path, token, request).await.err().map(|error| error.reason())
        };
        let (ada_id, lin_id) = (ada.id.to_string(), lin.id.to_string());

        assert_eq!(reason(None, &ada_id).await, Some(Reason::TokenMissing), "{path} without a token");
        let others = reason(Some(&adas_token), &lin_id).await;
        let expected = (rule != Rule::Anyone).then_some(Reason::NotAllowed);
        match expected {
            Some(expected) => assert_eq!(others, Some(expected), "{path} for somebody else"),
            None => assert_ne!(others, Some(Reason::NotAllowed), "{path} is for anyone"),
        }
        if rule != Rule::Service {
            assert_ne!(reason(Some(&adas_token), &ada_id).await, Some(Reason::NotAllowed), "{path} for oneself");
        }
        assert_ne!(reason(Some(&services_token), &lin_id).await, Some(Reason::NotAllowed), "{path} by a service");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_method_is_refused_without_a_token_and_unimplemented_with_one() {
    let world = Sandbox::start().await;
    let address = world.timelines()[0];
    let path = "/freshet.post.v1.PostService/Shout";
    let without = call_raw(address, path, None, Bytes::new()).await.unwrap_err();
    assert_eq!(without.reason(), Reason::TokenMissing);
    let token = world.token(&Caller::Service("tests".into()));
    assert!(call_raw(address, path, Some(&token), Bytes::new()).await.is_err());
}
