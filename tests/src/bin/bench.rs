//! Measures an area on the servers that `tests/bench` has started.

fn main() -> std::process::ExitCode {
    tests::bench::main()
}
