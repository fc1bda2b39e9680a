//! Who asks, where nobody says it: the operating system's user, as libpq has it. `$USER` is another thing: a container has
//! none, and what is run by sudo may have the caller's.

use std::ffi::{CStr, c_char};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use crate::error::DriveError;

/// What the entry of a user takes, with room for long ones from a directory service.
const ENTRY_BYTES: usize = 64 << 10;

/// Name of the user whose rights this process has.
pub(crate) fn operating_systems_user() -> Result<String, DriveError> {
    let id = rustix::process::geteuid().as_raw();
    name_of(id).map_err(|error| {
        DriveError::new(
            format!("nobody says who connects, and the operating system's user {id} has no name: {error}"),
            "say as whom with PGUSER, or user= in the connection string",
        )
    })
}

fn name_of(id: u32) -> io::Result<String> {
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut texts: Vec<c_char> = vec![0; ENTRY_BYTES];
    let mut found = ptr::null_mut();
    // SAFETY: every pointer is to a local that outlives the call, and the length is that of the texts.
    let failed = unsafe { libc::getpwuid_r(id, entry.as_mut_ptr(), texts.as_mut_ptr(), texts.len(), &raw mut found) };
    if failed != 0 {
        return Err(io::Error::from_raw_os_error(failed));
    }
    if found.is_null() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "there is no entry of it"));
    }
    // SAFETY: what was found is the entry, whose name is a terminated text among `texts`, which is still there.
    let name = unsafe { CStr::from_ptr((*found).pw_name) };
    Ok(name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_name_of_the_operating_system() {
        assert_eq!(name_of(0).unwrap(), "root");
    }

    #[test]
    fn a_user_without_a_name_is_said_as_such() {
        // Beyond the ranges that anybody gives out.
        let error = name_of(4_123_456_789).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
    }
}
