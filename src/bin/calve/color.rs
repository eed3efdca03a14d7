//! Colours for the words, strings and comments of a statement that is being typed.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer, Whitespace};

const KEYWORD: &str = "\x1b[1;34m";
const STRING: &str = "\x1b[32m";
const NUMBER: &str = "\x1b[36m";
const COMMENT: &str = "\x1b[90m";
const RESET: &str = "\x1b[0m";

/// `text` with escape sequences for colours; as it is where it does not tokenise, as in the middle of a string.
pub(crate) fn colored(text: &str) -> String {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location() else { return text.to_owned() };
    let mut out = String::with_capacity(text.len() + 64);
    let mut done = 0;
    for token in tokens {
        let Some(color) = color_of(&token.token) else { continue };
        let (start, end) = (offset(text, token.span.start), offset(text, token.span.end));
        let (Some(before), Some(part)) = (text.get(done..start), text.get(start..end)) else { continue };
        out.extend([before, color, part, RESET]);
        done = end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

fn color_of(token: &Token) -> Option<&'static str> {
    match token {
        Token::Word(word) if word.quote_style.is_none() && word.keyword != Keyword::NoKeyword => Some(KEYWORD),
        Token::SingleQuotedString(_) => Some(STRING),
        Token::Number(..) => Some(NUMBER),
        Token::Whitespace(Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_)) => Some(COMMENT),
        _ => None,
    }
}

/// Byte of a place in the text, which counts characters; the end of the text for one behind it.
fn offset(text: &str, place: Location) -> usize {
    let line = usize::try_from(place.line).unwrap_or(usize::MAX).saturating_sub(1);
    let column = usize::try_from(place.column).unwrap_or(usize::MAX).saturating_sub(1);
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = text.get(start..).unwrap_or_default();
    rest.char_indices().nth(column).map_or(text.len(), |(at, _)| start + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_strings_numbers_and_comments_have_colors() {
        let (k, s, n, c, r) = (KEYWORD, STRING, NUMBER, COMMENT, RESET);
        assert_eq!(
            colored("select é, 'it''s'\nFROM t -- x"),
            format!("{k}select{r} é, {s}'it''s'{r}\n{k}FROM{r} t {c}-- x{r}")
        );
        assert_eq!(colored("x = 12"), format!("x = {n}12{r}"));
    }

    #[test]
    fn without_the_colors_the_text_is_as_typed() {
        for text in [
            "select 'open",
            "",
            "\\d t",
            "SELECT \"a b\" FROM 't.parquet' WHERE x > 1e3 AND y = 'ü'; ",
            "/* a\nb */ select\t1",
        ] {
            let mut plain = colored(text);
            for code in [KEYWORD, STRING, NUMBER, COMMENT, RESET] {
                plain = plain.replace(code, "");
            }
            assert_eq!(plain, text);
        }
    }
}
