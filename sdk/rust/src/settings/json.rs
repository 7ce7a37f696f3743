//! Reads one flat JSON object. Nested values and fractions are checked for
//! their brackets only: no setting takes them.

/// What a setting was set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A whole number.
    Int(i64),
    /// `true` or `false`.
    Flag(bool),
    /// A text.
    Text(String),
    /// Anything else.
    Other,
}

/// The members of an object, in order; a name that comes twice is refused.
pub(super) fn object(text: &str) -> Result<Vec<(String, Value)>, String> {
    let mut reader = Reader { text, at: 0 };
    let mut members: Vec<(String, Value)> = Vec::new();
    if reader.peek().is_none() {
        return Ok(members);
    }
    reader.expect('{')?;
    if reader.peek() != Some('}') {
        loop {
            let name = reader.string()?;
            if members.iter().any(|(n, _)| *n == name) {
                return Err(format!("{name}: given twice"));
            }
            reader.expect(':')?;
            let value = reader.value()?;
            members.push((name, value));
            if reader.peek() != Some(',') {
                break;
            }
            reader.expect(',')?;
        }
    }
    reader.expect('}')?;
    match reader.peek() {
        None => Ok(members),
        Some(_) => Err(reader.error("the end")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// The next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        let skip = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
        self.at += skip;
        self.rest().chars().next()
    }

    fn error(&self, expected: &str) -> String {
        format!("configuration, character {}: expected {expected}", self.at + 1)
    }

    fn expect(&mut self, c: char) -> Result<(), String> {
        if self.peek() != Some(c) {
            return Err(self.error(c.encode_utf8(&mut [0; 4])));
        }
        self.at += c.len_utf8();
        Ok(())
    }

    fn string(&mut self) -> Result<String, String> {
        self.expect('"')?;
        let mut out = String::new();
        loop {
            let c = self.next("a closing \"")?;
            match c {
                '"' => return Ok(out),
                '\\' => out.push(self.escape()?),
                c => out.push(c),
            }
        }
    }

    fn next(&mut self, expected: &str) -> Result<char, String> {
        let c = self.rest().chars().next().ok_or_else(|| self.error(expected))?;
        self.at += c.len_utf8();
        Ok(c)
    }

    fn escape(&mut self) -> Result<char, String> {
        Ok(match self.next("an escape")? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                let mut code = 0;
                for _ in 0..4 {
                    let digit = self.next("a hexadecimal digit")?.to_digit(16);
                    code = code * 16 + digit.ok_or_else(|| self.error("a hexadecimal digit"))?;
                }
                // Half of a pair stands for no character of its own.
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            c @ ('"' | '\\' | '/') => c,
            _ => return Err(self.error("an escape")),
        })
    }

    fn value(&mut self) -> Result<Value, String> {
        match self.peek() {
            Some('"') => Ok(Value::Text(self.string()?)),
            Some('{' | '[') => self.skip(),
            _ => {
                let word = self.rest().split([',', '}', ']', ' ', '\n', '\t', '\r']).next();
                let word = word.unwrap_or("").to_owned();
                self.at += word.len();
                match word.as_str() {
                    "true" => Ok(Value::Flag(true)),
                    "false" => Ok(Value::Flag(false)),
                    "null" => Ok(Value::Other),
                    // The digits of JSON: no sign but minus.
                    n if n.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                        Ok(n.parse().map_or(Value::Other, Value::Int))
                    }
                    _ => Err(self.error("a value")),
                }
            }
        }
    }

    /// A nested value: passes over it by its brackets.
    fn skip(&mut self) -> Result<Value, String> {
        let mut depth = 0;
        loop {
            match self.peek().ok_or_else(|| self.error("a closing bracket"))? {
                '"' => drop(self.string()?),
                c => {
                    self.at += c.len_utf8();
                    match c {
                        '{' | '[' => depth += 1,
                        '}' | ']' => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 {
                        return Ok(Value::Other);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::object;

    #[test]
    fn what_is_no_object_is_refused_with_its_place() {
        for (text, error) in [
            ("[1]", "configuration, character 1: expected {"),
            (r#"{"a" 1}"#, "configuration, character 6: expected :"),
            (r#"{"a": 1"#, "configuration, character 8: expected }"),
            (r#"{"a": x}"#, "configuration, character 8: expected a value"),
            (r#"{"a": "x"#, "configuration, character 9: expected a closing \""),
            (r#"{"a": [1}"#, "configuration, character 10: expected }"),
            (r"{} x", "configuration, character 4: expected the end"),
        ] {
            assert_eq!(object(text).unwrap_err(), error, "{text}");
        }
    }
}
