//! Lines for the queue's owner.

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something is wrong.
    Error = 1,
    /// Something may be.
    Warning = 2,
    /// Good to know.
    Information = 3,
    /// For the author.
    Debug = 4,
}

/// Tells the queue's owner something; see [`log!`](crate::log). The host
/// meters lines and drops those above the limit. Natively lines go to standard
/// error.
pub fn log(level: Level, text: &str) {
    #[cfg(target_arch = "wasm32")]
    crate::wasm::log(level as i32, text);
    #[cfg(not(target_arch = "wasm32"))]
    eprintln!("{level:?}: {text}");
}

/// Logs a formatted line: `log!(Warning, "no mix yet, {} shapes", n)`.
#[macro_export]
macro_rules! log {
    ($level:ident, $($text:tt)+) => {
        $crate::host::log($crate::host::Level::$level, &::std::format!($($text)+))
    };
}
