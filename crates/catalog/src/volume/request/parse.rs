//! Reads `TYPE[:key=value,...]`, with remedies for what cannot be read.

use crate::error::SpecError;
use crate::nearest::nearest;
use crate::units::quoted;
use crate::volume::facts::file::VolumeFile;
use crate::volume::request::Request;
use crate::volume::request::item::{BadItem, read_item};
use crate::volume::request::remedy;

impl Request {
    /// Reads a specification. The type and the keys may be in any case, and spaces around them do no harm.
    pub fn parse(text: &str, catalog: &'static [VolumeFile]) -> Result<Self, SpecError> {
        let (name, keys) = match text.split_once(':') {
            Some((name, keys)) => (name.trim(), Some(keys)),
            None => (text.trim(), None),
        };
        let found = find(name, catalog);
        // For an unknown type, read the keys of the nearest known one, so that the remedy keeps them.
        let (request, bad) = found.or_else(|| guess(name, catalog)).map_or((None, None), |file| {
            let (request, bad) = Request::new(file).with_keys(keys);
            (Some(request), bad)
        });
        match (found, request, bad) {
            (Some(_), Some(request), None) => Ok(request),
            (Some(file), Some(request), Some(bad)) => {
                let instead = bad.instead.into_iter().map(|item| item.map_or(request, |item| request.with(item)));
                let message = format!("{}: {}", file.name, bad.problem);
                Err(SpecError { message, remedy: remedy::text(instead) })
            }
            (_, request, _) => Err(unknown_type(name, request, catalog)),
        }
    }

    /// Every key that makes sense, and the first that does not.
    fn with_keys(mut self, keys: Option<&str>) -> (Self, Option<BadItem>) {
        let mut first_bad = None;
        let mut given: Vec<&str> = Vec::new();
        for part in keys.into_iter().flat_map(|keys| keys.split(',')) {
            match read_item(part, self.file, &mut given) {
                Ok(item) => self = self.with(item),
                Err(bad) => first_bad = first_bad.or(Some(bad)),
            }
        }
        (self, first_bad)
    }
}

fn find(name: &str, catalog: &'static [VolumeFile]) -> Option<&'static VolumeFile> {
    let is = |other: &str| other.eq_ignore_ascii_case(name);
    catalog.iter().find(|file| is(&file.name) || file.aliases.iter().any(|alias| is(&alias.name)))
}

fn guess(name: &str, catalog: &'static [VolumeFile]) -> Option<&'static VolumeFile> {
    let aliases = |file: &'static VolumeFile| file.aliases.iter().map(|alias| alias.name.as_str());
    let names = catalog.iter().flat_map(|file| aliases(file).chain([file.name.as_str()]));
    nearest(name, names).and_then(|name| find(name, catalog))
}

/// Types that are offered when nothing is near to what was asked for.
const COMMON: [&str; 3] = ["gp3", "io2bx", "gp2"];

fn unknown_type(name: &str, nearest: Option<Request>, catalog: &'static [VolumeFile]) -> SpecError {
    let what = if name.is_empty() {
        "a volume begins with its type, and none is given".to_owned()
    } else {
        format!("there is no volume type {}", quoted(name))
    };
    let remedy = match nearest {
        Some(request) => remedy::text([request]),
        None => remedy::text(COMMON.iter().filter_map(|name| find(name, catalog)).map(Request::new)),
    };
    SpecError { message: format!("{what}; `pgdyno catalog volumes` lists all {}", catalog.len()), remedy }
}
