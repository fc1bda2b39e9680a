//! The files of `imdb` have the shape of the public ones.

use std::collections::BTreeMap;

use pgdyno_dataset::imdb::{File, Imdb};
use proptest::prelude::*;

/// 61,617 titles and 75,611 people: six whole rounds of titles, so ratios that are exact show.
const SCALE: f64 = 0.005;

fn text(file: File, data: &Imdb, units: std::ops::Range<u64>) -> (u64, String) {
    let mut out = Vec::new();
    let rows = data.file(file).rows;
    let rows = units.map(|unit| rows.write(unit, &mut out)).sum();
    (rows, String::from_utf8(out).expect("it is UTF-8"))
}

fn whole(file: File) -> (u64, String) {
    let data = Imdb::new(SCALE, 1);
    text(file, &data, 0..data.file(file).rows.units())
}

/// The share of rows whose column is NULL.
fn nulls(text: &str, column: usize) -> f64 {
    let values: Vec<&str> = text.lines().map(|line| line.split('\t').nth(column).expect("the row has it")).collect();
    values.iter().filter(|value| **value == "\\N").count() as f64 / values.len() as f64
}

fn near(found: f64, wanted: f64, tolerance: f64) -> bool {
    (found - wanted).abs() <= tolerance
}

#[test]
fn rows_are_as_many_as_in_the_public_files() {
    for file in File::ALL {
        let (rows, text) = whole(file);
        assert_eq!(rows, text.lines().count() as u64, "{}", file.name());
        let wanted = Imdb::new(SCALE, 1).file(file).rows.rows_expected() as f64;
        assert!(near(wanted, file.public_rows() as f64 * SCALE, 5.0), "{}: {wanted}", file.name());
        // Four standard deviations of the most variable count (title.ratings: 8,207 rows) are 4.1 %.
        assert!(near(rows as f64 / wanted, 1.0, 0.045), "{}: {rows} rows for {wanted}", file.name());
        let width = text.len() as f64 / rows as f64;
        // A shape, not the text itself; ids of a small data set have a digit less.
        assert!(near(width / file.public_bytes_per_row() as f64, 1.0, 0.2), "{}: {width} bytes", file.name());
    }
}

#[test]
fn nulls_are_as_frequent_as_in_the_public_files() {
    // (file, column, per cent) of the profile of March 2026.
    for (file, column, percent) in [
        (File::NameBasics, 2, 95.59),
        (File::NameBasics, 3, 98.31),
        (File::TitleBasics, 6, 98.75),
        (File::TitleBasics, 7, 64.12),
        (File::TitlePrincipals, 4, 80.98),
        (File::TitlePrincipals, 5, 51.22),
        (File::TitleAkas, 3, 22.43),
        (File::TitleAkas, 4, 32.97),
        (File::TitleAkas, 5, 69.31),
        (File::TitleAkas, 6, 99.44),
        (File::TitleCrew, 1, 44.02),
        (File::TitleCrew, 2, 48.97),
        (File::TitleEpisode, 2, 20.58),
        (File::TitleEpisode, 3, 20.58),
        (File::TitleRatings, 1, 0.0),
    ] {
        let found = nulls(&whole(file).1, column);
        // Four standard deviations of a share of one half among 47,000 rows.
        assert!(
            near(found, percent / 100.0, 0.01),
            "{} {}: {found} for {percent} %",
            file.name(),
            file.columns()[column]
        );
    }
}

#[test]
fn a_few_people_have_most_parts_and_half_have_none() {
    let mut parts: BTreeMap<String, u64> = BTreeMap::new();
    let (rows, text) = whole(File::TitlePrincipals);
    for line in text.lines() {
        *parts.entry(line.split('\t').nth(2).expect("a name").to_owned()).or_default() += 1;
    }
    let mut counts: Vec<u64> = parts.values().copied().collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let people = File::NameBasics.public_rows() as f64 * SCALE;
    // 7.0 of 15.1 million people there.
    assert!(near(counts.len() as f64 / people, 0.463, 0.02), "{} of {people}", counts.len());
    let tenth: u64 = counts[..counts.len() / 10].iter().sum();
    // The root of a tenth.
    assert!(near(tenth as f64 / rows as f64, 0.316, 0.03), "{tenth} of {rows}");
}

#[test]
fn files_agree_about_titles() {
    let (_, basics) = whole(File::TitleBasics);
    let kinds: BTreeMap<&str, &str> = basics
        .lines()
        .map(|line| {
            let mut columns = line.split('\t');
            (columns.next().expect("an id"), columns.next().expect("a type"))
        })
        .collect();
    assert_eq!(kinds.len(), basics.lines().count(), "each id is there once");
    let (episodes, episode) = whole(File::TitleEpisode);
    for line in episode.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        assert_eq!(kinds[columns[0]], "tvEpisode");
        assert!(kinds[columns[1]].starts_with("tv") && kinds[columns[1]].ends_with("eries"), "{line}");
    }
    assert_eq!(kinds.values().filter(|kind| **kind == "tvEpisode").count() as u64, episodes);
    for file in [File::TitleAkas, File::TitleCrew, File::TitleRatings, File::TitlePrincipals] {
        let (_, text) = whole(file);
        assert!(text.lines().all(|line| kinds.contains_key(line.split('\t').next().expect("an id"))));
    }
}

#[test]
fn numbers_are_in_their_bounds() {
    for line in whole(File::TitleRatings).1.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let (rating, votes): (f64, u64) = (columns[1].parse().unwrap(), columns[2].parse().unwrap());
        assert!((1.0..=10.0).contains(&rating) && (5..=3_000_000).contains(&votes), "{line}");
    }
    for line in whole(File::TitleBasics).1.lines().take(20_000) {
        let columns: Vec<&str> = line.split('\t').collect();
        let year = |text: &str| text.parse::<u32>().ok();
        if let (Some(start), Some(end)) = (year(columns[5]), year(columns[6])) {
            assert!(start <= end, "{line}");
        }
        let mut genres: Vec<&str> = columns[8].split(',').collect();
        genres.dedup();
        assert!(genres.is_sorted() && genres.len() == columns[8].split(',').count(), "{line}");
    }
}

proptest! {
    #[test]
    fn a_title_does_not_depend_on_those_before_it(seed: u64, unit in 0_u64..60_000, file in 0_usize..7) {
        let (file, data) = (File::ALL[file], Imdb::new(SCALE, seed));
        let (_, alone) = text(file, &data, unit..unit + 1);
        let (_, later) = text(file, &data, unit.saturating_sub(3)..unit + 1);
        prop_assert!(later.ends_with(&alone));
        for line in alone.lines() {
            prop_assert_eq!(line.split('\t').count(), file.columns().len());
            prop_assert!(!line.contains('\r') && !line.replace("\\N", "").contains('\\'), "{}", line);
        }
    }
}
