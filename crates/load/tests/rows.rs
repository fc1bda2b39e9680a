//! Where rows end: every short file, cut into blocks in every way that matters, against a reader of whole files.

use std::time::Duration;

use pgdyno_load::{Broken, Chunk, Format, Planner, Row, Rows, Rule};
use proptest::prelude::*;

const CSV: Format = Format::Csv { quote: '"', escape: '"', marker: false };
const CSV_MARKED: Format = Format::Csv { quote: '"', escape: '"', marker: true };
const CSV_ESCAPED: Format = Format::Csv { quote: '\'', escape: '\\', marker: true };
const FORMATS: [Format; 4] = [CSV, CSV_MARKED, CSV_ESCAPED, Format::Text];

fn rows(format: Format, blocks: &[&[u8]]) -> Vec<Row> {
    let mut scanner = Rows::new(format);
    let mut found = Vec::new();
    for block in blocks {
        scanner.scan(block, |row| found.push(row));
    }
    found.extend(scanner.finish());
    found
}

fn ends(format: Format, data: &[u8]) -> Vec<u64> {
    rows(format, &[data]).iter().map(|row| row.end).collect()
}

/// The line end that data begin with. In a file whose lines end in CR, the LF of CR LF is the next line's.
fn line_end<'a>(data: &'a [u8], kind: Option<&[u8]>) -> Option<&'a [u8]> {
    let len = match data {
        [b'\r', b'\n', ..] if kind != Some(&b"\r"[..]) => 2,
        [b'\r' | b'\n', ..] => 1,
        _ => return None,
    };
    Some(&data[..len])
}

/// Into how many rows COPY, as described, cuts these data; none when it refuses them.
fn copied(format: Format, data: &[u8]) -> Option<u64> {
    copied_ends(format, data).map(|ends| ends.len() as u64)
}

/// Where those rows end; that of the last one may be the mark behind it. It has all of the data at hand.
fn copied_ends(format: Format, data: &[u8]) -> Option<Vec<u64>> {
    let (mut i, mut begin, mut ends) = (0, 0, Vec::new());
    let mut quoted = false;
    let mut kind: Option<&[u8]> = None;
    while let Some(&byte) = data.get(i) {
        let alone = i == begin && {
            let rest = &data[(i + 2).min(data.len())..];
            line_end(rest, kind).is_some_and(|end| kind.is_none_or(|kind| kind == end))
        };
        let marks = data[i..].starts_with(b"\\.");
        match format {
            Format::Csv { quote, escape, .. } if quoted => {
                quoted = byte != quote as u8;
                i += if quoted && byte == escape as u8 { 2 } else { 1 };
                continue;
            }
            Format::Csv { marker: true, .. } if marks && alone => return Some(ends),
            Format::Csv { quote, .. } if byte == quote as u8 => (quoted, i) = (true, i + 1),
            Format::Text if marks => {
                ends.extend((i > begin).then_some(data.len() as u64));
                return Some(ends);
            }
            Format::Text if byte == b'\\' => i += 2,
            _ => match line_end(&data[i..], kind) {
                None => i += 1,
                Some(end) if *kind.get_or_insert(end) != end => return None,
                Some(end) => {
                    (i, begin) = (i + end.len(), i + end.len());
                    ends.push(i as u64);
                }
            },
        }
    }
    // What is behind the last line end is a row too; one that an escape or a backslash ends has nothing behind it.
    ends.extend((data.len() > begin).then_some(data.len() as u64));
    (!quoted).then_some(ends)
}

/// All files of up to `len` of these bytes.
fn every(alphabet: &[u8], len: usize) -> Vec<Vec<u8>> {
    let mut files = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..len {
        let until = files.len();
        for index in from..until {
            for byte in alphabet {
                files.push([&files[index][..], &[*byte]].concat());
            }
        }
        from = until;
    }
    files
}

#[test]
fn every_short_file_has_the_rows_that_copy_makes_of_it() {
    for format in FORMATS {
        let alphabet: &[u8] = if format == CSV_ESCAPED { b"a'\\\n\r." } else { b"a\"\\\n\r." };
        for file in every(alphabet, 7) {
            let found = rows(format, &[&file]);
            let accepted = found.iter().all(|row| row.broken.is_none());
            let count = found.iter().filter(|row| row.is_data).count() as u64;
            assert_eq!(
                accepted.then_some(count),
                copied(format, &file),
                "{format:?} {:?}",
                file.escape_ascii().to_string()
            );
        }
    }
}

#[test]
fn every_short_file_has_the_same_rows_in_blocks_of_one_byte() {
    for format in FORMATS {
        for file in every(b"a\"'\\\n\r.", 6) {
            let whole = rows(format, &[&file]);
            let bytes: Vec<&[u8]> = file.chunks(1).collect();
            assert_eq!(rows(format, &bytes), whole, "{format:?} {:?}", file.escape_ascii().to_string());
            assert_eq!(whole.last().map_or(0, |row| row.end), file.len() as u64, "nothing is left over");
        }
    }
}

#[test]
fn line_ends_in_quotes_are_data() {
    assert_eq!(ends(CSV, b"1,\"a\nb\"\n2,\"\"\"\n\"\n3\n"), [8, 16, 18]);
}

#[test]
fn a_quote_in_the_middle_of_a_value_counts_too() {
    assert_eq!(ends(CSV, b"5\" pipe\n6\" pipe\n"), [16]);
}

#[test]
fn an_escape_counts_only_inside_of_quotes() {
    assert_eq!(ends(CSV_ESCAPED, b"a\\'b\nc'\n'd\\'e\n'\n"), [8, 16]);
}

#[test]
fn a_backslash_takes_the_newline_with_it() {
    assert_eq!(ends(Format::Text, b"a\\\nb\nc\\\\\nd"), [5, 9, 10]);
}

#[test]
fn the_first_line_says_how_lines_end() {
    let broken = |data: &[u8]| rows(CSV, &[data]).iter().map(|row| row.broken).collect::<Vec<_>>();
    assert_eq!(broken(b"a\r\nb\nc\r\n"), [None, Some(Broken { rule: Rule::StrayNewline, at: 4 }), None]);
    assert_eq!(broken(b"a\nb\r\nc\n"), [None, Some(Broken { rule: Rule::StrayReturn, at: 3 }), None]);
    assert_eq!(broken(b"a\rb\nc\r"), [None, Some(Broken { rule: Rule::StrayNewline, at: 3 }), None]);
    assert_eq!(broken(b"\"a\r\n\"\n\"b"), [None, Some(Broken { rule: Rule::OpenQuote, at: 8 })]);
}

fn chunks(format: Format, data: &[u8], chunk_bytes: u64, header: bool, block: usize) -> Vec<Chunk> {
    let mut planner = Planner::new(format, chunk_bytes, header);
    let mut found = Vec::new();
    for block in data.chunks(block) {
        planner.take(block, |chunk| found.push(chunk));
    }
    found.extend(planner.finish());
    found
}

/// Lines of all sorts, more of those that are rows than arbitrary bytes would be.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let value = prop_oneof![
        "[a-c]{0,5}",
        "\"[a-c\n\r,]{0,5}\"",
        Just("\"\"\"\"".to_owned()),
        Just("\\.".to_owned()),
        Just("\\\\".to_owned()),
        "[\"\\\\\n\r.a]{0,4}",
    ];
    let line =
        (proptest::collection::vec(value, 1..4), prop_oneof![4 => Just("\n"), 1 => Just("\r\n"), 1 => Just("\r")]);
    proptest::collection::vec(line, 0..20)
        .prop_map(|lines| lines.into_iter().flat_map(|(values, end)| (values.join(",") + end).into_bytes()).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunks_are_the_file_and_each_is_what_it_was_in_the_whole(
        data in file(), format in prop::sample::select(FORMATS.to_vec()),
        chunk_bytes in 1_u64..64, header in any::<bool>(), block in 1_usize..32,
    ) {
        let whole = rows(format, &[&data]);
        let found = chunks(format, &data, chunk_bytes, header, block);
        let headed = header && whole.first().is_some_and(|row| row.is_data);
        let begin = if headed { whole[0].end } else { 0 };
        let mut at = begin;
        let mut rows_before = 0;
        for (number, chunk) in found.iter().enumerate() {
            prop_assert_eq!((chunk.number, chunk.begin, chunk.rows_before), (number as u64, at, rows_before));
            prop_assert!(chunk.end - chunk.begin >= chunk_bytes || number + 1 == found.len());
            let bytes = &data[chunk.begin as usize..chunk.end as usize];
            if found.iter().all(|chunk| chunk.rows_broken == 0) {
                prop_assert_eq!(copied(format, bytes), Some(chunk.rows), "a chunk alone is what it is in the whole");
            }
            (at, rows_before) = (chunk.end, rows_before + chunk.rows);
        }
        prop_assert_eq!(at, if found.is_empty() { begin } else { data.len() as u64 });
        let rows = whole.iter().skip(usize::from(header)).filter(|row| row.is_data).count() as u64;
        prop_assert_eq!(rows_before, rows);
        prop_assert_eq!(chunks(format, &data, chunk_bytes, header, data.len().max(1)), found, "however it is read");
    }
}

/// Any bytes, more of those that mean something.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![6 => prop::sample::select(&b"a,\"'\\\n\r."[..]), 1 => any::<u8>()];
    let mark = Just(b"\n\\.\n".to_vec());
    prop::collection::vec(prop_oneof![20 => byte.prop_map(|byte| vec![byte]), 1 => mark], 0..300)
        .prop_map(|parts| parts.concat())
}

/// The data in blocks that end at these places.
fn blocks<'a>(data: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(data.len() + 1)).chain([0, data.len()]).collect();
    ends.sort_unstable();
    ends.windows(2).map(|pair| &data[pair[0]..pair[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_have_the_rows_that_a_reader_of_the_whole_finds_wherever_blocks_end(
        data in bytes(), format in prop::sample::select(FORMATS.to_vec()),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12), chunk_bytes in 1_u64..64,
    ) {
        let whole = rows(format, &[&data]);
        let blocks = blocks(&data, &cuts);
        prop_assert_eq!(&rows(format, &blocks), &whole, "rows of blocks");
        let begins = [0].into_iter().chain(whole.iter().map(|row| row.end));
        prop_assert!(begins.zip(&whole).all(|(begin, row)| begin < row.end), "a row has a byte");
        prop_assert_eq!(whole.last().map_or(0, |row| row.end), data.len() as u64, "nothing is left over");
        let is_sound = whole.iter().all(|row| row.broken.is_none());
        let ends = whole.iter().filter(|row| row.is_data).map(|row| row.end).collect::<Vec<_>>();
        prop_assert_eq!(is_sound.then_some(ends), copied_ends(format, &data), "rows of COPY");
        let mut planner = Planner::new(format, chunk_bytes, false);
        let mut chunks = Vec::new();
        for block in &blocks {
            planner.take(block, |chunk| chunks.push(chunk));
            let (begin, bytes) = planner.row_under_way();
            prop_assert!(begin + bytes <= data.len() as u64);
        }
        chunks.extend(planner.finish());
        prop_assert_eq!(chunks.iter().map(|chunk| chunk.rows).sum::<u64>(), whole.iter().filter(|row| row.is_data).count() as u64);
        prop_assert_eq!(chunks.last().map_or(0, |chunk| chunk.end), data.len() as u64);
    }
}

#[test]
fn the_length_of_a_row_is_known_while_it_is_under_way_and_nothing_else_is_kept() {
    for format in FORMATS {
        let mut finder = Rows::new(format);
        finder.scan(b"first\n", |_| ());
        let open: &[u8] = if let Format::Csv { quote: '\'', .. } = format { b"'" } else { b"\"" };
        finder.scan(open, |_| ());
        let block = vec![b'x'; 1 << 20];
        for _ in 0..64 {
            finder.scan(&block, |_| panic!("it has not ended"));
        }
        assert_eq!(finder.row_under_way(), (6, (64 << 20) + 1));
    }
    let mut ended = Rows::new(Format::Text);
    ended.scan(b"a\n\\.\n", |_| ());
    ended.scan(&[b'x'; 1 << 16], |_| ());
    assert_eq!(ended.row_under_way().1, 0, "what COPY ignores is no row");
}

/// CPU time of this thread.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

#[test]
fn twice_the_bytes_take_twice_the_time_whatever_they_are_and_however_they_come() {
    let took = |format, pattern: &[u8], bytes: usize, block: usize| {
        let data = pattern.repeat(bytes / pattern.len());
        let measured = || {
            let began = cpu();
            let mut planner = Planner::new(format, 1 << 10, true);
            let mut chunks = 0_u64;
            data.chunks(block).for_each(|block| planner.take(block, |_| chunks += 1));
            planner.finish();
            cpu() - began
        };
        (0..3).map(|_| measured()).min().unwrap()
    };
    let patterns: [&[u8]; 7] = [b"\"", b"\r", b"\\", b"\n", b"\\.", b"\"\n", b"a\r\n"];
    for (format, pattern) in FORMATS.into_iter().flat_map(|format| patterns.map(|pattern| (format, pattern))) {
        for block in [1, 4096] {
            let (once, twice) = (took(format, pattern, 40_000, block), took(format, pattern, 80_000, block));
            // What a busy machine adds is milliseconds; the square of this length would be seconds.
            let limit = 3 * once + Duration::from_millis(100);
            assert!(twice < limit, "{format:?} {:?} {block}: {once:?}, {twice:?}", pattern.escape_ascii().to_string());
        }
    }
}

/// Chunks of a file from `begin` on by a planner that knows its length.
fn grown(planner: Planner, data: &[u8], begin: u64, (most, last): (u64, u64), block: usize) -> Vec<Chunk> {
    let mut planner = planner.growing(most, last, Some(data.len() as u64));
    let mut found = Vec::new();
    for block in data[begin as usize..].chunks(block) {
        planner.take(block, |chunk| found.push(chunk));
    }
    found.extend(planner.finish());
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunks_of_a_file_whose_length_is_known_are_longer_where_much_is_left_and_shorter_at_the_end(
        data in file(), format in prop::sample::select(FORMATS.to_vec()), usual in 1_u64..16, most in 0_u64..64,
        last in 0_u64..16, header in any::<bool>(), block in 1_usize..32, passed in any::<prop::sample::Index>(),
    ) {
        let lengths = (most, last);
        let found = grown(Planner::new(format, usual, header), &data, 0, lengths, block);
        for chunk in &found[..found.len().saturating_sub(1)] {
            let wanted = ((data.len() as u64 - chunk.begin) / 8).clamp(last.clamp(1, usual), most.max(usual));
            prop_assert!(chunk.end - chunk.begin >= wanted);
        }
        let short = chunks(format, &data, usual, header, block);
        prop_assert!(last < usual || found.len() <= short.len());
        let rows = |chunks: &[Chunk]| chunks.iter().map(|chunk| chunk.rows).sum::<u64>();
        prop_assert_eq!(rows(&found), rows(&short));
        prop_assert_eq!(&grown(Planner::new(format, usual, header), &data, 0, lengths, data.len().max(1)), &found);
        let mut whole = Rows::new(format);
        whole.scan(&data, |_| ());
        whole.finish();
        prop_assume!(found.len() > 1);
        let next = &found[passed.index(found.len())];
        let rest = grown(Planner::resume(format, usual, whole.line_end(), next), &data, next.begin, lengths, block);
        prop_assert_eq!(&rest[..], &found[next.number as usize..]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_planner_that_goes_on_behind_any_chunk_finds_the_rest(
        data in file(), format in prop::sample::select(FORMATS.to_vec()),
        chunk_bytes in 1_u64..64, header in any::<bool>(), block in 1_usize..32, passed in any::<prop::sample::Index>(),
    ) {
        let found = chunks(format, &data, chunk_bytes, header, block);
        let mut whole = Rows::new(format);
        whole.scan(&data, |_| ());
        whole.finish();
        prop_assume!(found.len() > 1);
        let next = &found[passed.index(found.len())];
        let mut planner = Planner::resume(format, chunk_bytes, whole.line_end(), next);
        let mut rest = Vec::new();
        for block in data[next.begin as usize..].chunks(block) {
            planner.take(block, |chunk| rest.push(chunk));
        }
        rest.extend(planner.finish());
        prop_assert_eq!(&rest[..], &found[next.number as usize..]);
    }
}
