//! Words, titles and names out of syllables, in five scripts: text of the length and the alphabets that there is in the public
//! files, without a word of them.

use super::draw::Draw;

/// A way to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Latin,
    Cyrillic,
    Greek,
    Katakana,
    Devanagari,
}

/// One draw of 64 bits makes a word: six bits for each syllable.
const BITS: u32 = 6;
const LATIN: [&str; 64] = [
    "a", "ba", "be", "bo", "ca", "che", "co", "da", "de", "di", "do", "e", "el", "en", "er", "fa", "fi", "ga", "ge",
    "go", "ha", "he", "hi", "i", "in", "ja", "jo", "ka", "ke", "ki", "la", "le", "li", "lo", "lu", "ma", "me", "mi",
    "mo", "na", "ne", "ni", "no", "o", "on", "pa", "pe", "ra", "re", "ri", "ro", "sa", "se", "si", "so", "ta", "te",
    "ti", "to", "u", "va", "vi", "wa", "é",
];
const CYRILLIC: [&str; 16] =
    ["ба", "ве", "го", "да", "ел", "жи", "за", "ко", "ла", "мо", "на", "по", "ра", "ся", "ти", "ш"];
const GREEK: [&str; 16] =
    ["α", "βα", "γε", "δο", "ελ", "ζω", "θη", "κα", "λο", "μα", "νε", "πο", "ρα", "σι", "τη", "ως"];
const KATAKANA: [&str; 16] =
    ["ア", "イ", "カ", "キ", "ク", "サ", "シ", "ス", "タ", "ト", "ナ", "ハ", "マ", "ラ", "リ", "ン"];
const DEVANAGARI: [&str; 16] = ["अ", "आ", "क", "की", "ग", "च", "ज", "ता", "द", "न", "प", "म", "र", "ला", "व", "सा"];

impl Script {
    fn syllable(self, bits: u64) -> &'static str {
        let place = (bits % 64) as usize;
        match self {
            Self::Latin => LATIN[place],
            Self::Cyrillic => CYRILLIC[place % 16],
            Self::Greek => GREEK[place % 16],
            Self::Katakana => KATAKANA[place % 16],
            Self::Devanagari => DEVANAGARI[place % 16],
        }
    }

    /// The alphabet of a region; of most it is the Latin one.
    pub(super) fn of_region(region: &str) -> Self {
        match region {
            "RU" | "UA" | "BG" | "RS" => Self::Cyrillic,
            "GR" => Self::Greek,
            "JP" => Self::Katakana,
            "IN" => Self::Devanagari,
            _ => Self::Latin,
        }
    }
}

/// Appends a word of so many syllables, with a capital where the script has any.
fn write_word(draw: &mut Draw, script: Script, syllables: u32, out: &mut Vec<u8>) {
    let mut bits = draw.bits();
    let mut text = [0; 4];
    for place in 0..syllables {
        let syllable = script.syllable(bits);
        bits >>= BITS;
        let mut letters = syllable.chars();
        if let (0, Some(first)) = (place, letters.next()) {
            for capital in first.to_uppercase() {
                out.extend_from_slice(capital.encode_utf8(&mut text).as_bytes());
            }
            out.extend_from_slice(letters.as_str().as_bytes());
        } else {
            out.extend_from_slice(syllable.as_bytes());
        }
    }
}

/// Appends a title of two to five words. One in two hundred has a word in quotation marks, as nicknames have.
pub(super) fn write_title(draw: &mut Draw, script: Script, out: &mut Vec<u8>) {
    let (words, quoted) = (draw.between(2, 5), draw.happens(500));
    for word in 0..words {
        if word > 0 {
            out.push(b' ');
        }
        if quoted && word == 1 {
            out.push(b'"');
        }
        let syllables = draw.between(1, 3);
        write_word(draw, script, syllables, out);
        if quoted && word == 1 {
            out.push(b'"');
        }
    }
}

/// Appends the name of a person: the given one is often one of a few.
pub(super) fn write_name(draw: &mut Draw, out: &mut Vec<u8>) {
    let given = draw.popular(4_000);
    write_word(&mut Draw::word(given), Script::Latin, 2 + (given % 2) as u32, out);
    out.push(b' ');
    let syllables = draw.between(2, 4);
    write_word(draw, Script::Latin, syllables, out);
}

/// Appends the name of a part in a title.
pub(super) fn write_character(draw: &mut Draw, out: &mut Vec<u8>) {
    let (words, syllables) = (draw.between(1, 2), draw.between(1, 3));
    for word in 0..words {
        if word > 0 {
            out.push(b' ');
        }
        write_word(draw, Script::Latin, syllables, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::File;
    use super::*;

    fn title(number: u64, script: Script) -> String {
        let mut out = Vec::new();
        write_title(&mut Draw::new(1, File::TitleBasics, number), script, &mut out);
        String::from_utf8(out).expect("it is UTF-8")
    }

    #[test]
    fn a_title_is_one_line_that_copy_takes_as_it_is() {
        for script in [Script::Latin, Script::Cyrillic, Script::Greek, Script::Katakana, Script::Devanagari] {
            for number in 0..2_000 {
                let text = title(number, script);
                assert!(!text.contains(['\t', '\n', '\r', '\\']) && text.len() >= 3, "{text:?}");
                assert_eq!(text.matches('"').count() % 2, 0, "{text:?}");
            }
        }
    }

    #[test]
    fn scripts_are_told_apart_and_words_begin_with_a_capital() {
        assert_ne!(title(7, Script::Latin), title(7, Script::Greek));
        assert!(title(7, Script::Cyrillic).chars().next().is_some_and(char::is_uppercase));
        assert_eq!([Script::of_region("JP"), Script::of_region("US")], [Script::Katakana, Script::Latin]);
    }

    #[test]
    fn given_names_come_again() {
        let given: std::collections::BTreeSet<String> = (0..10_000)
            .map(|number| {
                let mut out = Vec::new();
                write_name(&mut Draw::new(1, File::NameBasics, number), &mut out);
                String::from_utf8(out).unwrap().split_once(' ').unwrap().0.to_owned()
            })
            .collect();
        assert!((500..4_000).contains(&given.len()), "{}", given.len());
    }
}
