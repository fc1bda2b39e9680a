//! The files of titles: what each of them says of one.

use super::counts::{AKAS, DIRECTORS, EPISODES, GENRES, PRINCIPALS, RATED, SEASONS, WRITERS, YEAR_LAST, null};
use super::data::Imdb;
use super::draw::Draw;
use super::file::File;
use super::ids;
use super::title::Titles;
use super::words::{self, Script};
use super::writers::{write_count, write_null};

/// The 28 genres, the most frequent first; the order is assumed.
const ALL_GENRES: [&str; 28] = [
    "Drama",
    "Comedy",
    "Talk-Show",
    "Short",
    "Documentary",
    "News",
    "Romance",
    "Family",
    "Reality-TV",
    "Animation",
    "Crime",
    "Action",
    "Adventure",
    "Music",
    "Game-Show",
    "Adult",
    "Sport",
    "Fantasy",
    "Mystery",
    "Horror",
    "Thriller",
    "History",
    "Sci-Fi",
    "Biography",
    "Musical",
    "War",
    "Western",
    "Film-Noir",
];
/// Regions with their languages, the most frequent first; the order is assumed.
const REGIONS: [(&str, &str); 24] = [
    ("DE", "de"),
    ("JP", "ja"),
    ("FR", "fr"),
    ("IN", "hi"),
    ("ES", "es"),
    ("IT", "it"),
    ("PT", "pt"),
    ("US", "en"),
    ("GB", "en"),
    ("BR", "pt"),
    ("RU", "ru"),
    ("PL", "pl"),
    ("GR", "el"),
    ("HU", "hu"),
    ("UA", "uk"),
    ("TR", "tr"),
    ("SE", "sv"),
    ("FI", "fi"),
    ("BG", "bg"),
    ("RS", "sr"),
    ("MX", "es"),
    ("CA", "en"),
    ("NL", "nl"),
    ("XWW", "en"),
];
const KINDS_OF_NAMES: [&str; 7] = ["imdbDisplay", "alternative", "working", "dvd", "festival", "tv", "video"];
const ATTRIBUTES: [&str; 4] = ["literal title", "informal title", "reissue title", "short title"];
/// Who has a part in a title, and whether by acting. The thirteen categories are those of the public file, their shares are
/// assumed so that the columns beside them have its nulls.
const CATEGORIES: [(u32, (&str, bool)); 13] = [
    (21_400, ("actor", true)),
    (16_000, ("actress", true)),
    (13_300, ("self", true)),
    (12_500, ("writer", false)),
    (10_400, ("producer", false)),
    (8_600, ("director", false)),
    (6_000, ("editor", false)),
    (4_300, ("cinematographer", false)),
    (3_700, ("composer", false)),
    (1_600, ("production_designer", false)),
    (1_600, ("casting_director", false)),
    (500, ("archive_footage", true)),
    (100, ("archive_sound", true)),
];
const JOBS: [&str; 8] = [
    "producer",
    "written by",
    "creator",
    "story",
    "screenplay",
    "director of photography",
    "co-director",
    "film editing",
];
/// Where a title is not called as in its own language.
const OTHER_ORIGINAL: u32 = 3_000;
/// Of titles for adults: assumed.
const ADULT: u32 = 3_000;
/// Episodes that have no name but their number: assumed.
const NUMBERED: u32 = 40_000;

/// The season and the number of an episode, the same in each file that has them.
fn numbers(data: &Imdb, title: u64) -> Option<(u32, u32)> {
    let draw = &mut Draw::shared(data.seed, title);
    if draw.happens(null::SEASON) {
        return None;
    }
    Some((draw.count(SEASONS), draw.count(EPISODES)))
}

pub(super) fn basics(data: &Imdb, title: u64, out: &mut Vec<u8>) -> u64 {
    let draw = &mut Draw::new(data.seed, File::TitleBasics, title);
    let kind = Titles::kind(title);
    ids::write_title(title, out);
    out.push(b'\t');
    out.extend_from_slice(kind.name.as_bytes());
    out.push(b'\t');
    let begin = out.len();
    let numbered = kind.is_episode() && draw.happens(NUMBERED);
    let number = if numbered { numbers(data, title) } else { None };
    match number {
        Some((season, episode)) => {
            out.extend_from_slice(b"Episode #");
            write_count(season, out);
            out.push(b'.');
            write_count(episode, out);
        }
        None => words::write_title(draw, Script::Latin, out),
    }
    let end = out.len();
    out.push(b'\t');
    if draw.happens(OTHER_ORIGINAL) {
        words::write_title(draw, Script::Latin, out);
    } else {
        out.extend_from_within(begin..end);
    }
    out.extend_from_slice(if draw.happens(ADULT) { b"\t1\t" } else { b"\t0\t" });
    years(draw, kind.is_series(), out);
    out.push(b'\t');
    if draw.happens(null::RUNTIME) {
        write_null(out)
    } else {
        write_count(draw.between(5, 120), out)
    }
    out.push(b'\t');
    genres(draw, out);
    out.push(b'\n');
    1
}

fn years(draw: &mut Draw, is_series: bool, out: &mut Vec<u8>) {
    if draw.happens(null::START_YEAR) {
        write_null(out);
        out.push(b'\t');
        return write_null(out);
    }
    // More titles are of late than of long ago.
    let start = YEAR_LAST - draw.popular(130) as u32;
    write_count(start, out);
    out.push(b'\t');
    if is_series && !draw.happens(null::END_YEAR_OF_SERIES) {
        return write_count((start + draw.below(8)).min(YEAR_LAST), out);
    }
    write_null(out);
}

/// Up to three, in alphabetical order as there, each once.
fn genres(draw: &mut Draw, out: &mut Vec<u8>) {
    if draw.happens(null::GENRES) {
        return write_null(out);
    }
    let (count, first) = (draw.count(GENRES) as usize, draw.popular(ALL_GENRES.len() as u64) as usize);
    let mut chosen = [""; 3];
    for (place, genre) in chosen[..count].iter_mut().enumerate() {
        *genre = ALL_GENRES[(first + place * 3) % ALL_GENRES.len()];
    }
    chosen[..count].sort_unstable();
    for (place, genre) in chosen[..count].iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(genre.as_bytes());
    }
}

pub(super) fn akas(data: &Imdb, title: u64, out: &mut Vec<u8>) -> u64 {
    let draw = &mut Draw::new(data.seed, File::TitleAkas, title);
    let others = draw.count(AKAS);
    ids::write_title(title, out);
    out.extend_from_slice(b"\t1\t");
    words::write_title(draw, Script::Latin, out);
    out.extend_from_slice(b"\t\\N\t\\N\toriginal\t\\N\t1\n");
    for place in 0..others {
        let (region, language) = *draw.favourite(&REGIONS);
        ids::write_title(title, out);
        out.push(b'\t');
        write_count(place + 2, out);
        out.push(b'\t');
        words::write_title(draw, Script::of_region(region), out);
        out.push(b'\t');
        optional(draw, null::REGION_OF_OTHERS, region, out);
        out.push(b'\t');
        optional(draw, null::LANGUAGE_OF_OTHERS, language, out);
        out.push(b'\t');
        let kind = *draw.favourite(&KINDS_OF_NAMES);
        optional(draw, null::TYPES_OF_OTHERS, kind, out);
        out.push(b'\t');
        let attribute = *draw.favourite(&ATTRIBUTES);
        optional(draw, null::ATTRIBUTES_OF_OTHERS, attribute, out);
        out.extend_from_slice(b"\t0\n");
    }
    u64::from(others) + 1
}

fn optional(draw: &mut Draw, null: u32, text: &str, out: &mut Vec<u8>) {
    if draw.happens(null) { write_null(out) } else { out.extend_from_slice(text.as_bytes()) }
}

pub(super) fn crew(data: &Imdb, title: u64, out: &mut Vec<u8>) -> u64 {
    let draw = &mut Draw::new(data.seed, File::TitleCrew, title);
    ids::write_title(title, out);
    for (null, counts) in [(null::DIRECTORS, DIRECTORS), (null::WRITERS, WRITERS)] {
        out.push(b'\t');
        if draw.happens(null) {
            write_null(out);
            continue;
        }
        for place in 0..draw.count(counts) {
            if place > 0 {
                out.push(b',');
            }
            ids::write_person(data.people.participant(draw), out);
        }
    }
    out.push(b'\n');
    1
}

pub(super) fn episode(data: &Imdb, title: u64, out: &mut Vec<u8>) -> u64 {
    if !Titles::kind(title).is_episode() {
        return 0;
    }
    let draw = &mut Draw::new(data.seed, File::TitleEpisode, title);
    ids::write_title(title, out);
    out.push(b'\t');
    ids::write_title(data.titles.series(draw), out);
    match numbers(data, title) {
        None => out.extend_from_slice(b"\t\\N\t\\N\n"),
        Some((season, episode)) => {
            out.push(b'\t');
            write_count(season, out);
            out.push(b'\t');
            write_count(episode, out);
            out.push(b'\n');
        }
    }
    1
}

pub(super) fn principals(data: &Imdb, title: u64, out: &mut Vec<u8>) -> u64 {
    let draw = &mut Draw::new(data.seed, File::TitlePrincipals, title);
    let parts = draw.count(PRINCIPALS);
    for place in 1..=parts {
        let (category, acts) = draw.weighted(&CATEGORIES);
        ids::write_title(title, out);
        out.push(b'\t');
        write_count(place, out);
        out.push(b'\t');
        ids::write_person(data.people.participant(draw), out);
        out.push(b'\t');
        out.extend_from_slice(category.as_bytes());
        out.push(b'\t');
        if acts {
            write_null(out);
            out.push(b'\t');
            characters(draw, category, out);
        } else {
            let job = *draw.favourite(&JOBS);
            optional(draw, null::JOB_OF_CREW, job, out);
            out.push(b'\t');
            write_null(out);
        }
        out.push(b'\n');
    }
    u64::from(parts)
}

/// As there: a list in brackets, each name in quotation marks.
fn characters(draw: &mut Draw, category: &str, out: &mut Vec<u8>) {
    if draw.happens(null::CHARACTERS_OF_CAST) {
        return write_null(out);
    }
    out.extend_from_slice(b"[\"");
    if category == "self" {
        out.extend_from_slice(b"Self");
    } else {
        words::write_character(draw, out);
        if draw.happens(2_000) {
            out.extend_from_slice(b"\",\"");
            words::write_character(draw, out);
        }
    }
    out.extend_from_slice(b"\"]");
}

pub(super) fn ratings(data: &Imdb, title: u64, out: &mut Vec<u8>) -> u64 {
    let draw = &mut Draw::new(data.seed, File::TitleRatings, title);
    if !draw.happens(RATED) {
        return 0;
    }
    ids::write_title(title, out);
    out.push(b'\t');
    // Most about 6: three draws and a constant, in the mean.
    let three: u32 = (0..3).map(|_| draw.below(91)).sum();
    let tenths = if draw.happens(5_000) { draw.between(10, 100) } else { (three + 70) / 4 + 10 };
    write_count(tenths / 10, out);
    out.push(b'.');
    write_count(tenths % 10, out);
    out.push(b'\t');
    // At least five votes are needed. A power law: one title in ten has eighteen times as many as the least, few have millions.
    let unit = 1.0 - draw.unit();
    let votes = 5.0 / (unit * unit.sqrt().sqrt());
    write_count(votes.min(3_000_000.0) as u32, out);
    out.push(b'\n');
    1
}

#[cfg(test)]
mod tests {
    use super::super::draw::WHOLE;
    use super::*;

    #[test]
    fn shares_of_categories_make_the_columns_nulls() {
        assert_eq!(CATEGORIES.iter().map(|line| line.0).sum::<u32>(), WHOLE);
        let whole = f64::from(WHOLE);
        let cast: u32 = CATEGORIES.iter().filter(|line| line.1.1).map(|line| line.0).sum();
        let cast = f64::from(cast) / whole;
        let characters = 1.0 - cast * (1.0 - f64::from(null::CHARACTERS_OF_CAST) / whole);
        let jobs = 1.0 - (1.0 - cast) * (1.0 - f64::from(null::JOB_OF_CREW) / whole);
        // As the profile of the public files has them.
        assert!((characters - 0.5122).abs() < 0.001 && (jobs - 0.8098).abs() < 0.001, "{characters} {jobs}");
    }
}
