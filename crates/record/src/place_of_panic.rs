//! Where the last panic was, without its message: that may have a client's text in it.

use std::cell::RefCell;
use std::panic::set_hook;

thread_local! {
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Lets panics of the process be remembered and said by their place alone.
pub(crate) fn keep_places() {
    set_hook(Box::new(|panic| {
        let place = panic.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
        eprintln!("a bug in pgdyno, at {place}");
        PLACE.with_borrow_mut(|kept| *kept = Some(place));
    }));
}

/// Why a session is not followed after a panic: a bug, and where it is if that is known.
pub(crate) fn place_of_panic() -> String {
    let place = PLACE.with_borrow_mut(Option::take);
    place.map_or_else(|| "a bug".to_owned(), |place| format!("a bug at {place}"))
}
