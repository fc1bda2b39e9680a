//! Messages in other languages than English. They are told, and not read: each version of the server words them in its own way.

/// How a language writes a statement and a duration (`po/*.po` of the server, versions 9 to 18), by its name in `lc_messages`.
const LANGUAGES: &[(&str, &[&str])] = &[
    ("de", &["Anweisung: ", "Dauer: ", "Ausführen "]),
    ("es", &["sentencia: ", "duración: ", "ejecutar "]),
    ("fr", &["instruction : ", "durée : ", "exécute "]),
    ("it", &["istruzione: ", "durata: ", "esecuzione di "]),
    ("ja", &["文: ", "期間: ", "持続時間: ", "実行 "]),
    ("ka", &["ოპერატორი: ", "ხანგრძლივობა: ", "გაშვება "]),
    ("ko", &["명령 구문: ", "실행시간: ", "수행시간: ", "쿼리실행 "]),
    ("pl", &["wyrażenie: ", "czas trwania: ", "wykonanie "]),
    ("pt_BR", &["comando: ", "duração: ", "executar "]),
    ("ru", &["оператор: ", "продолжительность: ", "выполнение "]),
    ("sv", &["sats: ", "varaktighet: ", "varaktighet ", "kör "]),
    ("tr", &["komut: ", "süre: ", "ifade: "]),
    ("uk", &["тривалість: ", "виконувати ", "запит: "]),
    ("zh_CN", &["语句: ", "执行时间: ", "执行 "]),
    ("zh_TW", &["陳述式: ", "期間：", "執行 "]),
];

/// The language of a message about a statement, if it is not in English.
pub(crate) fn of(message: &str) -> Option<&'static str> {
    // English messages of this kind, and most others, begin with ASCII letters that no word above begins with and has its colon.
    let spoken = |beginnings: &&(&str, &[&str])| beginnings.1.iter().any(|beginning| message.starts_with(beginning));
    LANGUAGES.iter().find(spoken).map(|(name, _)| *name)
}
