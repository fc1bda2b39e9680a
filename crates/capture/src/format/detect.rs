//! The format of a file by its first lines.

use std::io;

use super::csv::Layout;
use super::documents;
use super::export;
use super::form::{Division, Format, Inner};
use super::frame::{Frame, OF_DOCUMENTS, Piece, Piecewise, Taken, Year, program_of};
use super::json::Documents;
use super::prefix::Prefix;
use crate::input::Input;

/// Lines that are looked at to tell a format.
const LINES_LOOKED_AT: usize = 200;
/// And no more than this of them.
const BYTES_LOOKED_AT: usize = 4 << 20;
/// Of those, the share that a prefix must fit: the others are lines of other programs and of long statements.
const FITTING_LEAST: f64 = 0.5;
/// Frames around frames: a runtime's in a store's, and an operator's.
const FRAMES_MAX: usize = 3;
/// Words before a line: of `awslogs` the group, the stream and a time.
const WORDS_MAX: usize = 3;
/// Prefixes that are tried where none is given: PostgreSQL's default, Debian's, those of RDS, Cloud SQL, Azure, Crunchy Bridge, Supabase and
/// Zalando's Spilo, and those that documents advise (pgBadger, pgreplay, pganalyze).
pub(super) const KNOWN_PREFIXES: [&str; 38] = [
    "%m [%p] %q%u@%d ",
    "%m [%p] ",
    "%t:%r:%u@%d:[%p]:",
    "%m:%r:%u@%d:[%p]:%l:%e:%s:%v:%x:%c:%q%a:",
    "%m:%r:%u@%d:[%p]:%l:%e:%s:%v:%x:%c:%q%a",
    "%m:%r:%u@%d:[%p]:",
    "%m [%p]: [%l-1] db=%d,user=%u ",
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%m [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%t [%p]: [%l-1] db=%d,user=%u,app=%a,client=%h ",
    "%m [%p]: [%l-1] db=%d,user=%u,app=%a,client=%h ",
    "%t [%p]: db=%d,user=%u,app=%a,client=%h ",
    "%m [%p]: db=%d,user=%u,app=%a,client=%h ",
    "%t [%p] user=%u,db=%d,app=%a,client=%h ",
    "%m [%p] user=%u,db=%d,app=%a,client=%h ",
    "%h %m [%p] %q%u@%d ",
    "%m [%p] %q%u@%d/%a ",
    "%t [%p]: [%l-1] user=%u,db=%d ",
    "%m [%p]: [%l-1] user=%u,db=%d ",
    "%t [%p]: user=%u,db=%d,app=%a,client=%h ",
    "%m [%p]: user=%u,db=%d,app=%a,client=%h ",
    "%t [%p]: [%l-1] %c %x %d %u %a %h ",
    "%m [%p][%b][%v][%x] %q[user=%u,db=%d,app=%a] ",
    "%m [%p] %q[user=%u,db=%d,app=%a] ",
    "%m [%p] %q[user=%u,db=%d,app=%a,host=%h] ",
    "%m [%p][%v] : [%l-1] %q[app=%a] ",
    "%t [%p]: [%l-1] user=%u,db=%d - PG-%e ",
    "%t [%p]: [%l-1] [trx_id=%x] user=%u,db=%d ",
    "%m %r %u %a [%c] [%p] ",
    "%t [%p-%l] %q%u@%d ",
    "%t [%p] %q%u@%d %h ",
    "%t [%p] %q%u@%d ",
    "%t [%p]: ",
    "%m [%p]: ",
    "%t [%p] ",
    "%m|%u|%d|%c|",
    "%t-%c-",
    "%m [%p] [user=%u,db=%d,app=%a] ",
];
/// Those that are tried where what is around a line says when it was written, and by which process.
const FRAMED_PREFIXES: [&str; 9] = [
    "user=%u,db=%d,app=%a,client=%h ",
    "user=%u,db=%d,client=%h ",
    "user=%u,db=%d ",
    "db=%d,user=%u ",
    "[%l-1] user=%u,db=%d,app=%a,client=%h ",
    "[%p]: [%l-1] db=%d,user=%u ",
    "pid=%p,user=%u,db=%d,app=%a,client=%h ",
    "%q%u@%d ",
    "",
];

/// Why a format is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Undetected {
    /// Nothing fits.
    Unknown,
    /// psql has printed it as a table: tabs are blanks there, in texts too.
    Psql,
    /// It is in UTF-16.
    Utf16,
    /// The prefix does not say what nothing around it says either.
    Lacking(&'static str),
}

/// Tells the format of a file from its first lines; `given` is the prefix of a log in stderr's format, and `written_us` when the file was
/// written, for times without a year.
pub(crate) fn detect(
    input: &mut Input<'_>,
    given: Option<&Prefix>,
    written_us: i64,
) -> io::Result<Result<Format, Undetected>> {
    let is_enough = |seen: &[u8]| {
        seen.len() >= BYTES_LOOKED_AT
            || memchr::memchr_iter(b'\n', seen).take(LINES_LOOKED_AT).count() == LINES_LOOKED_AT
    };
    while !is_enough(input.seen()) && input.more()? {}
    let head = &input.seen()[..input.seen().len().min(BYTES_LOOKED_AT)];
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Ok(Err(Undetected::Utf16));
    }
    let (division, texts) = divided(head)?;
    let looked = Looked { given, written_us };
    let format = |(frames, inner)| Format { frames, division, inner };
    let found = [false, true].into_iter().find_map(|of_any_language| looked.look(&texts, Vec::new(), of_any_language));
    if let Some(found) = found {
        return Ok(Ok(format(found)));
    }
    if is_of_psql(&texts) {
        return Ok(Err(Undetected::Psql));
    }
    Ok(match given {
        Some(prefix) => match prefix.lacking() {
            Some(why) => Err(Undetected::Lacking(why)),
            None => Ok(format((Vec::new(), Inner::Stderr { prefix: prefix.clone(), crlf: false }))),
        },
        None => Err(Undetected::Unknown),
    })
}

/// The lines of a head, or its documents or records.
fn divided(head: &[u8]) -> io::Result<(Division, Vec<Vec<u8>>)> {
    let lines = head.split(|byte| *byte == b'\n').take(LINES_LOOKED_AT);
    let lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
    let mut copy = Input::of(Box::new(io::Cursor::new(head.to_vec())));
    if export::is_one(head) {
        let mut texts = Vec::new();
        export::read::<io::Error>(&mut copy, &mut |piece| {
            if let Piecewise::Piece(piece, _) = piece {
                texts.push(piece.text.to_vec());
            }
            Ok(())
        })?;
        return Ok((Division::Export, texts));
    }
    let first = head.trim_ascii_start();
    let first = first.strip_prefix(b"[").map_or(first, <[u8]>::trim_ascii_start);
    let is_json = first.starts_with(b"{");
    let is_document = |line: &Vec<u8>| {
        let taken = OF_DOCUMENTS.iter().any(|frame| matches!(frame.take_out(line), Taken::Piece(_)));
        taken || std::str::from_utf8(line).is_ok_and(|line| Documents::of(line).is_some())
    };
    if !is_json || lines.iter().any(is_document) {
        return Ok((Division::Lines, lines));
    }
    let mut texts = Vec::new();
    while texts.len() < LINES_LOOKED_AT
        && let Some((begin, next)) = documents::next(&mut copy)?
    {
        texts.push(copy.seen()[begin..next.length].to_vec());
        copy.take(next.length);
    }
    Ok((Division::Documents, texts))
}

struct Looked<'a> {
    given: Option<&'a Prefix>,
    written_us: i64,
}

impl Looked<'_> {
    /// What texts are, within these frames and more of them.
    fn look(&self, texts: &[Vec<u8>], frames: Vec<Frame>, of_any_language: bool) -> Option<(Vec<Frame>, Inner)> {
        let lossy: Vec<_> = texts.iter().map(|text| String::from_utf8_lossy(text)).collect();
        let lines: Vec<&str> = lossy.iter().map(AsRef::as_ref).collect();
        if let Some(inner) = self.inner(&lines, &frames, of_any_language) {
            return Some((frames, inner));
        }
        if frames.len() == FRAMES_MAX {
            return None;
        }
        self.frames(texts).into_iter().find_map(|frame| {
            let inner = put_together(&frame, texts);
            let frames = frames.iter().cloned().chain([frame]).collect();
            self.look(&inner, frames, of_any_language)
        })
    }

    /// The frames that texts may have.
    fn frames(&self, texts: &[Vec<u8>]) -> Vec<Frame> {
        let fitting = |frame: &Frame| texts.iter().filter(|text| taken(frame, text).is_some()).count();
        if texts.iter().any(|text| text.trim_ascii_start().starts_with(b"{")) {
            let is_whole =
                |text: &Vec<u8>| matches!(Frame::Docker.take_out(text), Taken::Piece(Piece { goes_on: false, .. }));
            let fits = |frame: &&Frame| match frame {
                Frame::Docker => texts.iter().any(is_whole),
                frame => fitting(frame) > 0,
            };
            return OF_DOCUMENTS.iter().filter(fits).cloned().collect();
        }
        let programs = texts.iter().filter_map(|text| program_of(text));
        let mut frames = vec![Frame::Kubernetes];
        let mut counted: Vec<(&str, usize)> = Vec::new();
        for program in programs {
            match counted.iter_mut().find(|(known, _)| *known == program) {
                Some((_, count)) => *count += 1,
                None => counted.push((program, 1)),
            }
        }
        // The server is the program that writes most; by its name where it is the usual one.
        counted.sort_by_key(|(name, count)| (!name.starts_with("postgres"), std::cmp::Reverse(*count)));
        let year = Year::of(texts.first().map_or(&[], |text| text), self.written_us);
        frames.extend(counted.into_iter().take(2).map(|(name, _)| Frame::Syslog { program: name.to_owned(), year }));
        frames.extend((1..=WORDS_MAX).map(Frame::Words));
        let candidates = texts.iter().filter(|text| !text.starts_with(b"\t") && !text.is_empty()).count();
        let is_copied = texts.iter().any(|text| text.starts_with(b"\\t"));
        let mut found: Vec<Frame> = frames
            .into_iter()
            .filter(|frame| match frame {
                Frame::Syslog { .. } => fitting(frame) > 0,
                frame => fitting(frame) as f64 >= candidates as f64 * FITTING_LEAST && candidates > 0,
            })
            .collect();
        if is_copied {
            found.insert(0, Frame::Copy);
        }
        found
    }

    fn inner(&self, lines: &[&str], frames: &[Frame], of_any_language: bool) -> Option<Inner> {
        let crlf = is_crlf(lines);
        let is_framed = frames.iter().any(Frame::says_time_and_process);
        let variant = |prefix: Prefix| if of_any_language { prefix.of_any_language() } else { prefix };
        if lines.iter().any(|line| line.starts_with("\\t")) && !frames.contains(&Frame::Copy) {
            return None;
        }
        if let Some(given) = self.given {
            let prefix = variant(given.clone());
            let is_enough = is_framed || prefix.lacking().is_none();
            let fits = is_enough && lines.iter().any(|line| prefix.read(line).is_some());
            return fits.then_some(Inner::Stderr { prefix, crlf });
        }
        if let Some(documents) = lines.iter().find_map(|line| Documents::of(line)) {
            return Some(Inner::Json(documents));
        }
        if let Some(layout) = Layout::of(lines).filter(|_| frames.is_empty()) {
            return Some(Inner::Csv(Layout { crlf, ..layout }));
        }
        let known: Vec<Prefix> = KNOWN_PREFIXES
            .iter()
            .chain(FRAMED_PREFIXES.iter().filter(|_| is_framed))
            .filter_map(|text| Prefix::parse(text).ok())
            .map(variant)
            .collect();
        known_prefix(lines, known).map(|prefix| Inner::Stderr { prefix, crlf })
    }
}

/// The texts of lines in a frame, parts of one line together.
fn put_together(frame: &Frame, texts: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (mut whole, mut parts): (Vec<Vec<u8>>, Vec<u8>) = (Vec::new(), Vec::new());
    for text in texts {
        let goes_on = matches!(frame.take_out(text), Taken::Piece(Piece { goes_on: true, .. }));
        let Some(text) = taken(frame, text) else { continue };
        parts.extend(text);
        if !goes_on {
            whole.push(std::mem::take(&mut parts));
        }
    }
    whole
}

/// The text of a line in a frame.
fn taken(frame: &Frame, line: &[u8]) -> Option<Vec<u8>> {
    if line.starts_with(b"\t") && matches!(frame, Frame::Words(_)) {
        return Some(line.to_vec());
    }
    match frame.take_out(line) {
        Taken::Piece(Piece { text, .. }) => Some(text.strip_suffix(b"\n").unwrap_or(&text).to_vec()),
        _ => None,
    }
}

/// Whether all lines end in CR LF. The last one may not be whole.
fn is_crlf(lines: &[&str]) -> bool {
    let whole = &lines[..lines.len().saturating_sub(1)];
    let lines = if whole.is_empty() { lines } else { whole };
    !lines.is_empty() && lines.iter().all(|line| line.ends_with('\r'))
}

/// Whether psql has printed a table: a rule of dashes below its head, and lines that go on.
fn is_of_psql(texts: &[Vec<u8>]) -> bool {
    let is_rule = |text: &Vec<u8>| text.len() > 3 && text.trim_ascii().iter().all(|byte| matches!(byte, b'-' | b'+'));
    texts.iter().take(3).any(is_rule) && texts.iter().any(|text| text.trim_ascii_end().ends_with(b"+"))
}

/// The known prefix that fits the most lines; of several, the one with the most parts, as the name in a shorter one may hold what is a part of its
/// own (`user=app,app=api`); of these, the first.
fn known_prefix(lines: &[&str], prefixes: Vec<Prefix>) -> Option<Prefix> {
    let candidates: Vec<&&str> =
        lines.iter().filter(|line| !line.starts_with('\t') && !line.trim_end().is_empty()).collect();
    let fitting = |prefix: &Prefix| candidates.iter().filter(|line| prefix.read(line).is_some()).count();
    let mut best: Option<((usize, usize), Prefix)> = None;
    for prefix in prefixes {
        let fits = (fitting(&prefix), prefix.parts());
        if best.as_ref().is_none_or(|(most, _)| fits > *most) {
            best = Some((fits, prefix));
        }
    }
    let ((fits, _), prefix) = best?;
    (fits > 0 && fits as f64 >= candidates.len() as f64 * FITTING_LEAST).then_some(prefix)
}
