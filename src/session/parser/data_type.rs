//! Column types: every SQL and Spark spelling of an Iceberg type.
//!
//! Invariant: a spelling is either an Iceberg type with the same values, or an error; nothing is silently narrowed. Lengths
//! of character types are accepted and mean nothing, as in DataFusion. Field ids are 0 until the table is created.

use std::sync::Arc;

use datafusion::sql::sqlparser::tokenizer::Token;

use super::Cursor;
use crate::Result;
use crate::spec::{ListType, MapType, NestedField, PrimitiveType, StructType, Type};

impl Cursor<'_> {
    /// A type, with any number of `[]` behind it.
    pub(super) fn data_type(&mut self) -> Result<Type> {
        let mut parsed = self.nested(Self::base_type)?;
        while self.at_token(&Token::LBracket) && self.peek_at(1).is_some_and(|t| t.token == Token::RBracket) {
            self.advance();
            self.advance();
            parsed = list_of(parsed, false);
        }
        Ok(parsed)
    }

    fn base_type(&mut self) -> Result<Type> {
        let start = self.location();
        let Some(Token::Word(word)) = self.peek().map(|t| &t.token) else { return Err(self.expected("a type")) };
        let spelled = word.value.to_ascii_lowercase();
        self.advance();
        let primitive = match spelled.as_str() {
            "struct" | "row" => return self.struct_type(),
            "array" | "list" => return self.list_type(),
            "map" => return self.map_type(),
            "variant" => return Ok(Type::Variant),
            "boolean" | "bool" => PrimitiveType::Boolean,
            "tinyint" | "byte" | "int1" | "smallint" | "short" | "int2" | "int" | "integer" | "int4" => {
                self.refuse_unsigned()?;
                PrimitiveType::Int
            }
            "bigint" | "long" | "int8" => {
                self.refuse_unsigned()?;
                PrimitiveType::Long
            }
            "float" => match self.length(53)? {
                Some(precision) if precision > 24 => PrimitiveType::Double,
                _ => PrimitiveType::Float,
            },
            "real" | "float4" => PrimitiveType::Float,
            "double" => {
                self.eat_word("PRECISION");
                PrimitiveType::Double
            }
            "float8" => PrimitiveType::Double,
            "decimal" | "numeric" | "dec" => self.decimal()?,
            "date" => PrimitiveType::Date,
            "time" => self.time()?,
            "timestamp" | "datetime" => self.timestamp()?,
            "timestamp_ntz" => PrimitiveType::Timestamp,
            "timestamptz" | "timestamp_ltz" | "timestamp_tz" => PrimitiveType::Timestamptz,
            "timestamp_ns" => PrimitiveType::TimestampNs,
            "timestamptz_ns" => PrimitiveType::TimestamptzNs,
            "string" | "text" => PrimitiveType::String,
            "varchar" | "char" | "character" | "nvarchar" | "nchar" | "bpchar" => {
                self.eat_word("VARYING");
                self.length(u64::from(u32::MAX))?;
                PrimitiveType::String
            }
            "uuid" => PrimitiveType::Uuid,
            "fixed" => match self.length(i32::MAX as u64)? {
                Some(length) if length > 0 => PrimitiveType::Fixed(length),
                _ => return Err(self.error_at(start, "fixed needs a length of at least 1, as in fixed(16),")),
            },
            "binary" => match self.length(i32::MAX as u64)? {
                Some(0) => {
                    return Err(self.error_at(start, "binary(0) is no type: use binary, or a length of at least 1,"));
                }
                Some(length) => PrimitiveType::Fixed(length),
                None => PrimitiveType::Binary,
            },
            "varbinary" | "bytea" | "blob" | "bytes" => {
                self.length(u64::from(u32::MAX))?;
                PrimitiveType::Binary
            }
            "unknown" | "void" => PrimitiveType::Unknown,
            "geometry" => PrimitiveType::Geometry(self.geo_arguments(1)?.into_iter().next()),
            "geography" => {
                let mut arguments = self.geo_arguments(2)?.into_iter();
                PrimitiveType::Geography(arguments.next(), arguments.next())
            }
            _ => {
                let hint = if spelled.starts_with("uint") { " (Iceberg has no unsigned integers)" } else { "" };
                return Err(self.error_at(start, format!("expected a type, found {spelled}{hint}")));
            }
        };
        Ok(Type::Primitive(primitive))
    }

    fn refuse_unsigned(&mut self) -> Result<()> {
        // a display width, as in INT(11), says nothing about the values
        self.length(255)?;
        if self.looking_at(&["UNSIGNED"]) {
            return Err(self.error_at(self.location(), "UNSIGNED: Iceberg has no unsigned integers; use a wider type"));
        }
        Ok(())
    }

    /// `( n )`, or `[ n ]` as the specification spells `fixed[16]`, if next.
    fn length(&mut self, max: u64) -> Result<Option<u64>> {
        let close = if self.at_token(&Token::LParen) {
            Token::RParen
        } else if self.at_token(&Token::LBracket) && self.peek_at(1).is_some_and(|t| t.token != Token::RBracket) {
            Token::RBracket
        } else {
            return Ok(None);
        };
        self.advance();
        let length = self.integer("a length", max)?;
        self.expect(&close, "the end of the length")?;
        Ok(Some(length))
    }

    /// Precision and scale; a bare DECIMAL is `decimal(38, 10)`, as everywhere in DataFusion.
    fn decimal(&mut self) -> Result<PrimitiveType> {
        if !self.eat(&Token::LParen) {
            return Ok(PrimitiveType::Decimal { precision: 38, scale: 10 });
        }
        let start = self.location();
        let precision = self.integer("a precision", 38)?;
        let scale = if self.eat(&Token::Comma) { self.integer("a scale", 38)? } else { 0 };
        self.expect(&Token::RParen, ")")?;
        match (u8::try_from(precision), u8::try_from(scale)) {
            (Ok(precision @ 1..), Ok(scale)) if scale <= precision => Ok(PrimitiveType::Decimal { precision, scale }),
            _ => Err(self.error_at(
                start,
                format!(
                    "decimal({precision}, {scale}) is no type: precision is 1 to 38 and scale at most the precision,"
                ),
            )),
        }
    }

    fn time(&mut self) -> Result<PrimitiveType> {
        let start = self.location();
        let precision = self.length(9)?;
        if self.zone()?.is_some_and(|with| with) {
            return Err(self.error_at(start, "TIME WITH TIME ZONE is not an Iceberg type"));
        }
        match precision {
            Some(7..) => Err(self.error_at(start, "TIME has at most 6 digits of a second")),
            _ => Ok(PrimitiveType::Time),
        }
    }

    /// SQL's TIMESTAMP is without zone (Spark's is with one: write TIMESTAMPTZ).
    fn timestamp(&mut self) -> Result<PrimitiveType> {
        let nanoseconds = self.length(9)?.is_some_and(|digits| digits > 6);
        Ok(match (self.zone()?.unwrap_or(false), nanoseconds) {
            (false, false) => PrimitiveType::Timestamp,
            (false, true) => PrimitiveType::TimestampNs,
            (true, false) => PrimitiveType::Timestamptz,
            (true, true) => PrimitiveType::TimestamptzNs,
        })
    }

    /// `WITH TIME ZONE` is true, `WITHOUT TIME ZONE` false.
    fn zone(&mut self) -> Result<Option<bool>> {
        for (word, with) in [("WITH", true), ("WITHOUT", false)] {
            if self.looking_at(&[word, "TIME"]) || self.looking_at(&[word, "LOCAL"]) {
                self.advance();
                self.eat_word("LOCAL");
                self.expect_words(&["TIME", "ZONE"])?;
                return Ok(Some(with));
            }
        }
        Ok(None)
    }

    /// Up to `max` strings or words in parentheses.
    fn geo_arguments(&mut self, max: usize) -> Result<Vec<String>> {
        let mut arguments = Vec::new();
        if !self.eat(&Token::LParen) {
            return Ok(arguments);
        }
        loop {
            arguments.push(match self.string("a coordinate reference system") {
                Ok(text) => text,
                Err(_) => self.crs_word()?,
            });
            if arguments.len() == max || !self.eat(&Token::Comma) {
                break;
            }
        }
        self.expect(&Token::RParen, ")")?;
        Ok(arguments)
    }

    /// `srid:4326` or `spherical`, bare, in the spelling of the specification.
    fn crs_word(&mut self) -> Result<String> {
        let Some(Token::Word(word)) = self.peek().map(|t| &t.token) else {
            return Err(self.expected("a coordinate reference system"));
        };
        let mut text = word.value.clone();
        self.advance();
        if self.eat(&Token::Colon) {
            let after = match self.peek().map(|t| &t.token) {
                Some(Token::Word(w)) => w.value.clone(),
                Some(Token::Number(digits, _)) => digits.clone(),
                _ => return Err(self.expected("the name behind the colon")),
            };
            self.advance();
            text = format!("{text}:{after}");
        }
        Ok(text)
    }

    /// The opening bracket of type arguments: `<` or `(`.
    fn open_arguments(&mut self, of: &str) -> Result<bool> {
        if self.eat(&Token::Lt) {
            Ok(true)
        } else if self.eat(&Token::LParen) {
            Ok(false)
        } else {
            Err(self.expected(&format!("< after {of}")))
        }
    }

    fn close_arguments(&mut self, angle: bool, expected: &str) -> Result<()> {
        let closed = if angle { self.eat_greater() } else { self.eat(&Token::RParen) };
        if closed { Ok(()) } else { Err(self.expected(&format!("{expected}{}", if angle { ">" } else { ")" }))) }
    }

    /// `<name [:] type [NOT NULL] [COMMENT '…'], …>`.
    fn struct_type(&mut self) -> Result<Type> {
        let angle = self.open_arguments("STRUCT")?;
        let mut fields: Vec<Arc<NestedField>> = Vec::new();
        loop {
            let start = self.location();
            let name = self.ident("a field name")?;
            if fields.iter().any(|f| f.name == name) {
                return Err(self.error_at(start, format!("field {name} is there twice,")));
            }
            self.eat(&Token::Colon);
            let field_type = self.data_type()?;
            let required = self.not_null()?;
            let mut field = NestedField::new(0, name, required, field_type);
            if self.eat_word("COMMENT") {
                field.doc = Some(self.string("a comment in quotes")?);
            }
            fields.push(Arc::new(field));
            if !self.eat(&Token::Comma) {
                break;
            }
        }
        self.close_arguments(angle, "a comma or ")?;
        Ok(Type::Struct(StructType { fields }))
    }

    fn list_type(&mut self) -> Result<Type> {
        let angle = self.open_arguments("ARRAY")?;
        let element = self.data_type()?;
        let required = self.not_null()?;
        self.close_arguments(angle, "")?;
        Ok(list_of(element, required))
    }

    fn map_type(&mut self) -> Result<Type> {
        let angle = self.open_arguments("MAP")?;
        let key = self.data_type()?;
        self.not_null()?;
        self.expect(&Token::Comma, "a comma between key and value type")?;
        let value = self.data_type()?;
        let required = self.not_null()?;
        self.close_arguments(angle, "")?;
        Ok(Type::Map(Box::new(MapType {
            key: Arc::new(NestedField::new(0, "key", true, key)),
            value: Arc::new(NestedField::new(0, "value", required, value)),
        })))
    }

    /// `NOT NULL` is true; `NULL` and nothing are false.
    pub(super) fn not_null(&mut self) -> Result<bool> {
        if self.eat_word("NOT") {
            self.expect_words(&["NULL"])?;
            return Ok(true);
        }
        self.eat_word("NULL");
        Ok(false)
    }
}

fn list_of(element: Type, required: bool) -> Type {
    Type::List(Box::new(ListType { element: Arc::new(NestedField::new(0, "element", required, element)) }))
}
