//! Counts the fields of structs: a struct that hides its fields has few enough to remember.

use super::checks::{File, Offence};
use super::source::{Token, tokens};

/// The most fields of a struct.
pub const FIELDS_MAX: usize = 12;

/// A struct with named fields.
#[derive(Debug, PartialEq, Eq)]
pub struct Struct<'a> {
    pub name: &'a str,
    pub line: usize,
    pub fields: usize,
    /// Whether all fields are public: a record of plain values.
    pub is_record: bool,
}

/// Returns the structs with too many fields. An exception names `Name n`: the number may only
/// shrink.
pub fn fields(file: File<'_>) -> Vec<Offence> {
    if file.module().contains(&"tests") {
        return Vec::new();
    }
    let structs = structs(&tokens(file.text));
    let large = structs.iter().filter(|part| part.fields > FIELDS_MAX && !part.is_record);
    large
        .map(|part| {
            let what = format!("{} {}", part.name, part.fields);
            file.offence(part.line, &what, format!("fields, of {FIELDS_MAX}"))
        })
        .collect()
}

/// Returns the structs of a file.
pub fn structs<'a>(tokens: &[Token<'a>]) -> Vec<Struct<'a>> {
    let mut found = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        let Some(name) = tokens.get(place + 1).filter(|_| token.text == "struct") else { continue };
        let head =
            tokens[place..].iter().take_while(|token| !matches!(token.text, ";" | "{" | "("));
        let body = place + head.count();
        if tokens.get(body).is_some_and(|token| token.text == "{") {
            let (fields, public) = count(&tokens[body + 1..]);
            let is_record = fields == public;
            found.push(Struct { name: name.text, line: token.line, fields, is_record });
        }
    }
    found
}

/// Counts the fields up to the brace that closes the body, and how many of them are public.
fn count(body: &[Token<'_>]) -> (usize, usize) {
    let (mut depth, mut fields, mut public) = (0_i32, 0, 0);
    for (place, token) in body.iter().enumerate() {
        let text = |behind: usize| place.checked_sub(behind).map_or("", |at| body[at].text);
        match token.text {
            "(" | "[" | "{" => depth += 1,
            "}" if depth == 0 => break,
            ")" | "]" | "}" => depth -= 1,
            ":" if depth == 0 => {
                fields += 1;
                public += usize::from(text(2) == "pub");
            }
            _ => {}
        }
    }
    (fields, public)
}

#[test]
fn fields_can_fail() {
    let field = |number: usize, sight: &str| {
        format!("#[serde(x)] {sight} f{number}: Map<a::B, (u8, C)>,\n")
    };
    let many = |from: usize, to: usize, sight: &str| -> String {
        (from..to).map(|number| field(number, sight)).collect()
    };
    let text = format!(
        "struct Fits {{ {} }}\nstruct Record {{ {} }}\n\
         struct Large<T: Copy> where T: Clone {{ {} {} }}\n\
         struct Unit;\nstruct Pair(u8, u8);",
        many(0, FIELDS_MAX, ""),
        many(0, FIELDS_MAX + 1, "pub"),
        many(0, FIELDS_MAX, "pub(crate)"),
        many(FIELDS_MAX, FIELDS_MAX + 2, "pub(super)"),
    );
    let file = File { name: "src/x.rs", text: &text };
    let found: Vec<String> = fields(file).iter().map(|offence| offence.what.clone()).collect();
    assert_eq!(found, [format!("Large {}", FIELDS_MAX + 2)]);
    assert_eq!(structs(&tokens(&text)).len(), 3);
}
