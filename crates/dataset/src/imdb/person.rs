//! People: name.basics.

use super::counts::{KNOWN_FOR, PROFESSIONS, YEAR_LAST, null};
use super::data::Imdb;
use super::draw::Draw;
use super::file::File;
use super::writers::{write_count, write_null};
use super::{ids, words};

/// The professions, the most frequent first; the order and the shares are assumed.
const ALL: [&str; 46] = [
    "actor",
    "actress",
    "miscellaneous",
    "producer",
    "writer",
    "camera_department",
    "director",
    "art_department",
    "sound_department",
    "cinematographer",
    "editor",
    "visual_effects",
    "composer",
    "assistant_director",
    "make_up_department",
    "animation_department",
    "editorial_department",
    "music_department",
    "costume_department",
    "stunts",
    "production_manager",
    "location_management",
    "transportation_department",
    "script_department",
    "special_effects",
    "casting_department",
    "costume_designer",
    "art_director",
    "production_designer",
    "soundtrack",
    "music_artist",
    "casting_director",
    "talent_agent",
    "executive",
    "legal",
    "publicist",
    "manager",
    "set_decorator",
    "podcaster",
    "archive_footage",
    "archive_sound",
    "choreographer",
    "assistant",
    "accountant",
    "electrical_department",
    "production_department",
];

/// Appends the row of a person.
pub(super) fn write(data: &Imdb, person: u64, out: &mut Vec<u8>) -> u64 {
    let draw = &mut Draw::new(data.seed, File::NameBasics, person);
    ids::write_person(person, out);
    out.push(b'\t');
    words::write_name(draw, out);
    out.push(b'\t');
    years(draw, out);
    out.push(b'\t');
    professions(draw, out);
    out.push(b'\t');
    known_for(data, draw, out);
    out.push(b'\n');
    1
}

fn years(draw: &mut Draw, out: &mut Vec<u8>) {
    if draw.happens(null::BIRTH_YEAR) {
        write_null(out);
        out.push(b'\t');
        return write_null(out);
    }
    let born = draw.between(1860, 2005);
    write_count(born, out);
    out.push(b'\t');
    if draw.happens(null::DEATH_YEAR_OF_BORN) {
        return write_null(out);
    }
    let age = draw.between(20, 99);
    write_count((born + age).min(YEAR_LAST), out);
}

/// Each at most once.
fn professions(draw: &mut Draw, out: &mut Vec<u8>) {
    if draw.happens(null::PROFESSION) {
        return write_null(out);
    }
    let first = draw.popular(ALL.len() as u64) as usize;
    for place in 0..draw.count(PROFESSIONS) as usize {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(ALL[(first + place * 7) % ALL.len()].as_bytes());
    }
}

fn known_for(data: &Imdb, draw: &mut Draw, out: &mut Vec<u8>) {
    if draw.happens(null::KNOWN_FOR) {
        return write_null(out);
    }
    for place in 0..draw.count(KNOWN_FOR) {
        if place > 0 {
            out.push(b',');
        }
        let title = data.titles.known(draw);
        ids::write_title(title, out);
    }
}
