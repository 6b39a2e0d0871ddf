//! What every adapter of a store promises: one suite a trait, the same tests over all its adapters.

/// Runs each test of a suite on each adapter. A test takes what `$open` gives; where that is nothing, it is skipped.
macro_rules! store_contract {
    ($open:ident: [$($module:ident = $adapter:expr),* $(,)?] $tests:tt) => {
        $(store_contract!(@adapter $open $module ($adapter) $tests);)*
    };
    (@adapter $open:ident $module:ident ($adapter:expr) { $($test:ident,)* }) => {
        mod $module {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                if let Some(opened) = super::$open($adapter).await {
                    super::$test(opened).await;
                }
            })*
        }
    };
}

mod archive;
mod event_log;
mod ledger;
mod sets;
mod settled;
