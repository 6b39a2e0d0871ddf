//! The freshet binary with failpoints compiled in.

fn main() -> std::process::ExitCode {
    freshet::main()
}
