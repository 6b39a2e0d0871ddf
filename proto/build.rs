//! Compiles the .proto files without protoc, and turns the access rule of each method into a trait impl of its request, so
//! that a method without a rule, or with a rule about a field that is not there, does not compile.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MethodDescriptor};

const FILES: [&str; 9] = [
    "freshet/auth/v1/access.proto",
    "freshet/contents/v1/item.proto",
    "freshet/event/v1/delivery.proto",
    "freshet/event/v1/event.proto",
    "freshet/pod/v1/pod_service.proto",
    "freshet/post/v1/post_service.proto",
    "freshet/ranking/v1/ranking_service.proto",
    "freshet/timeline/v1/timeline_service.proto",
    "freshet/user/v1/user_service.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=freshet");
    let out = env::var("OUT_DIR")?;
    let out = Path::new(&out);

    let mut compiler = protox::Compiler::new(["."])?;
    compiler.include_source_info(true).include_imports(true).open_files(FILES)?;
    fs::write(out.join("descriptors.bin"), compiler.encode_file_descriptor_set())?;
    fs::write(out.join("access.rs"), access_impls(&compiler.descriptor_pool())?)?;

    let plain = prost::bytes::Bytes::from(compiler.file_descriptor_set().encode_to_vec());
    let descriptors = tonic_prost_build::FileDescriptorSet::decode(plain)?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}

fn access_impls(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let access = pool.get_extension_by_name("freshet.auth.v1.access").ok_or("the access option is not declared")?;
    let mut code = String::new();
    for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        let options = method.options();
        let access = options.get_extension(&access);
        let access = access.as_message().ok_or("the access option is a message")?;
        let (rule, subject) = rule(&method, access)?;
        let request = method.input().full_name().replace('.', "::");
        writeln!(
            code,
            "impl crate::access::Access for crate::{request} {{\n    \
             const RULE: crate::access::Rule = crate::access::Rule::{rule};\n    \
             fn subject(&self) -> Option<&str> {{ {subject} }}\n}}"
        )?;
    }
    Ok(code)
}

/// The rule's variant, and the expression for the person that a request acts for.
fn rule(method: &MethodDescriptor, access: &DynamicMessage) -> Result<(String, String), String> {
    let name = method.full_name();
    let text = |field| access.get_field_by_name(field).and_then(|value| value.as_str().map(str::to_owned));
    let flag = |field| access.get_field_by_name(field).and_then(|value| value.as_bool()).unwrap_or_default();

    if let Some(field) = text("acts_for").filter(|field| !field.is_empty()) {
        match method.input().get_field_by_name(&field).map(|found| found.kind()) {
            Some(Kind::String) => Ok((format!("ActsFor({field:?})"), format!("Some(&self.{field})"))),
            _ => Err(format!("{name}: acts_for names {field}, which is no string field of its request")),
        }
    } else if flag("anyone") {
        Ok(("Anyone".into(), "None".into()))
    } else if flag("service") {
        Ok(("Service".into(), "None".into()))
    } else {
        Err(format!("{name} has no access rule: add option (freshet.auth.v1.access)"))
    }
}
