//! Documents of JSON one behind the other, whatever their lines: a list of them, printed for people or in one line, or the list that is the
//! first key of an answer (`{"events": [`).

use std::io;

use crate::input::{End, Input, Next};

/// Keys of lists of documents: CloudWatch's, Azure's.
const LISTS: [&[u8]; 4] = [b"events", b"logEvents", b"records", b"value"];
/// Longer than any of them.
const KEY_BYTES_MAX: usize = 16;

/// How far a document was looked for.
#[derive(Default)]
struct Scan {
    /// Where it begins.
    begin: Option<usize>,
    depth: u32,
    quoted: bool,
    escaped: bool,
    /// Where the text begins that is being passed, and the last whole one of a document's first level.
    text: usize,
    key: Option<(usize, usize)>,
    is_first_key: bool,
}

impl Scan {
    /// Length of what is next up to the end of a document. Each byte is looked at once.
    fn document_length(&mut self, seen: &[u8], looked: usize) -> Option<usize> {
        let mut at = looked;
        while at < seen.len() {
            if self.quoted && !self.escaped {
                // Nothing else matters inside of a text.
                let found = memchr::memchr2(b'"', b'\\', &seen[at..])?;
                at += found;
            }
            let byte = seen[at];
            at += 1;
            if std::mem::take(&mut self.escaped) {
                continue;
            }
            match (byte, self.quoted) {
                (b'\\', true) => self.escaped = true,
                (b'"', true) => {
                    self.quoted = false;
                    self.key = (self.depth == 1).then_some((self.text, at - 1));
                }
                (b'"', false) => (self.quoted, self.text) = (true, at),
                (_, true) => (),
                (b'{', false) => {
                    if self.depth == 0 {
                        (self.begin, self.is_first_key) = (Some(at - 1), true);
                    }
                    self.depth += 1;
                }
                (b'[', false) if self.depth == 1 && self.is_list(seen) => (self.begin, self.depth) = (None, 0),
                (b'[', false) if self.depth > 0 => self.depth += 1,
                (b'}' | b']', false) if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at);
                    }
                }
                (b',', false) if self.depth == 1 => self.is_first_key = false,
                _ => (),
            }
        }
        None
    }

    /// Whether the last text is the first key of a document, and one whose value is a list of documents.
    fn is_list(&self, seen: &[u8]) -> bool {
        let Some((begin, end)) = self.key.filter(|(begin, end)| self.is_first_key && end - begin < KEY_BYTES_MAX)
        else {
            return false;
        };
        LISTS.contains(&&seen[begin..end])
    }
}

/// The next document: where it begins in what is next, and its end. None at the end of the file.
pub(super) fn next(input: &mut Input<'_>) -> io::Result<Option<(usize, Next)>> {
    let mut scan = Scan::default();
    let next = input.next(|seen, looked| scan.document_length(seen, looked))?;
    Ok(next.and_then(|next| match (next.end, scan.begin) {
        // Brackets behind the last one.
        (End::File, None) => None,
        (_, begin) => Some((begin.unwrap_or(0), next)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut input = Input::of(Box::new(io::Cursor::new(text.to_owned())));
        let mut found = Vec::new();
        while let Some((begin, next)) = super::next(&mut input).unwrap() {
            found.push(String::from_utf8(input.seen()[begin..next.length].to_vec()).unwrap());
            input.take(next.length);
        }
        found
    }

    #[test]
    fn documents_are_found_in_lists_and_answers_however_they_are_printed() {
        let documents = [r#"{"a": "}{[", "b": {"c": [1, {}]}}"#, r#"{"a": "\"", "events": [{}]}"#];
        for (before, between, after) in [
            ("", "\n", ""),
            ("[", ",", "]"),
            ("[\n  ", ",\n  ", "\n]\n"),
            ("{\"events\": [\n", ",\n", "],\n \"nextToken\": \"f/{\"}\n"),
            ("{\n  \"records\":[", ",", "]}"),
        ] {
            let text = format!("{before}{}{after}", documents.join(between));
            assert_eq!(found(&text), documents, "{text}");
        }
    }

    #[test]
    fn a_document_that_does_not_end_is_the_last() {
        assert_eq!(found("[{\"a\": 1}, {\"b\": \"x"), ["{\"a\": 1}", "{\"b\": \"x"]);
        assert_eq!(found("[]"), Vec::<String>::new());
    }

    #[test]
    fn no_byte_of_a_document_is_looked_at_twice() {
        let text: &'static str = format!("[{{\"a\": \"{}\"}}]", "x\\n".repeat(200_000)).leak();
        let mut scan = Scan::default();
        let (mut at, mut steps) = (0, 0);
        for end in (0..text.len()).step_by(1000).chain([text.len()]) {
            steps += end - at;
            let found = scan.document_length(&text.as_bytes()[..end], at);
            at = end;
            if let Some(length) = found {
                assert_eq!(length, text.len() - 1);
            }
        }
        assert_eq!(steps, text.len());
    }
}
