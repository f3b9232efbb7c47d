//! Arithmetic: `+ - * / % ^`, parentheses, a few functions. Evaluated as it is read.

/// Longest expression, characters.
const LONGEST: usize = 1000;
/// Deepest nesting of parentheses, signs and powers.
const DEEPEST: u32 = 64;

/// The value of an expression.
///
/// # Errors
/// It is no expression, is too long or too deep, or its value is not a finite number; says where.
pub fn evaluate(expression: &str) -> Result<f64, String> {
    if expression.len() > LONGEST {
        return Err(format!(
            "the expression is longer than {LONGEST} characters; shorten it"
        ));
    }
    let mut reader = Reader {
        text: expression.as_bytes(),
        at: 0,
        depth: 0,
    };
    let value = reader.sum()?;
    reader.blanks();
    if reader.at < reader.text.len() {
        return Err(reader.unexpected("an operator"));
    }
    finite(value)
}

fn finite(value: f64) -> Result<f64, String> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err("the value is not a finite number: a division by zero, or too large".to_owned())
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    depth: u32,
}

impl Reader<'_> {
    fn blanks(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.blanks();
        self.text.get(self.at).copied()
    }

    fn take(&mut self, wanted: &[u8]) -> Option<u8> {
        let found = self.peek().filter(|byte| wanted.contains(byte))?;
        self.at += 1;
        Some(found)
    }

    fn unexpected(&mut self, wanted: &str) -> String {
        let at = self.at + 1;
        match self.peek() {
            Some(byte) => format!(
                "{} at character {at}; expected {wanted}",
                char::from(byte).escape_default()
            ),
            None => format!("the expression ends; expected {wanted}"),
        }
    }

    /// Runs `inner` one level deeper.
    fn deeper(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<f64, String>,
    ) -> Result<f64, String> {
        if self.depth >= DEEPEST {
            return Err(format!(
                "nested deeper than {DEEPEST} levels; remove parentheses"
            ));
        }
        self.depth += 1;
        let value = inner(self);
        self.depth -= 1;
        value
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        while let Some(operator) = self.take(b"+-") {
            let right = self.product()?;
            value = if operator == b'+' {
                value + right
            } else {
                value - right
            };
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.signed()?;
        while let Some(operator) = self.take(b"*/%") {
            let right = self.signed()?;
            value = finite(match operator {
                b'*' => value * right,
                b'/' => value / right,
                _ => value % right,
            })?;
        }
        Ok(value)
    }

    /// A sign binds weaker than a power: `-2 ^ 2` is −4.
    fn signed(&mut self) -> Result<f64, String> {
        match self.take(b"+-") {
            Some(b'-') => Ok(-self.deeper(Self::signed)?),
            Some(_) => self.deeper(Self::signed),
            None => self.power(),
        }
    }

    /// A power is right-associative: `2 ^ 3 ^ 2` is 512.
    fn power(&mut self) -> Result<f64, String> {
        let base = self.operand()?;
        match self.take(b"^") {
            Some(_) => finite(base.powf(self.deeper(Self::signed)?)),
            None => Ok(base),
        }
    }

    fn operand(&mut self) -> Result<f64, String> {
        match self.peek() {
            Some(b'(') => {
                self.at += 1;
                let value = self.deeper(Self::sum)?;
                match self.take(b")") {
                    Some(_) => Ok(value),
                    None => Err(self.unexpected("`)`")),
                }
            }
            Some(byte) if byte.is_ascii_digit() || byte == b'.' => self.number(),
            Some(byte) if byte.is_ascii_alphabetic() => self.function(),
            _ => Err(self.unexpected("a number, a function or `(`")),
        }
    }

    fn number(&mut self) -> Result<f64, String> {
        let begin = self.at;
        let digits = |reader: &mut Self| {
            while reader.text.get(reader.at).is_some_and(u8::is_ascii_digit) {
                reader.at += 1;
            }
        };
        digits(self);
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            digits(self);
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            let mark = self.at;
            self.at += 1;
            if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            let first = self.at;
            digits(self);
            if self.at == first {
                self.at = mark;
            }
        }
        std::str::from_utf8(&self.text[begin..self.at])
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| format!("no number at character {}", begin + 1))
    }

    fn function(&mut self) -> Result<f64, String> {
        let begin = self.at;
        while self
            .text
            .get(self.at)
            .is_some_and(u8::is_ascii_alphanumeric)
        {
            self.at += 1;
        }
        let name = String::from_utf8_lossy(&self.text[begin..self.at]).to_ascii_lowercase();
        let apply: fn(f64) -> f64 = match name.as_str() {
            "pi" => return Ok(std::f64::consts::PI),
            "e" => return Ok(std::f64::consts::E),
            "sqrt" => f64::sqrt,
            "abs" => f64::abs,
            "ln" => f64::ln,
            "log10" => f64::log10,
            "exp" => f64::exp,
            "floor" => f64::floor,
            "ceil" => f64::ceil,
            "round" => f64::round,
            _ => {
                return Err(format!(
                    "no function is called `{name}`; there are sqrt, abs, ln, log10, exp, floor, ceil, round, and pi and e"
                ));
            }
        };
        if self.peek() != Some(b'(') {
            return Err(self.unexpected("`(`"));
        }
        finite(apply(self.operand()?))
    }
}

#[cfg(test)]
mod tests {
    use super::evaluate;
    use proptest::prelude::*;

    #[test]
    fn precedence_is_that_of_arithmetic() {
        for (text, value) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("8 - 3 - 2", 3.0),
            ("2 ^ 3 ^ 2", 512.0),
            ("-2 ^ 2", -4.0),
            ("2 ^ -1", 0.5),
            ("7 % 4 / 2", 1.5),
            ("sqrt(16) + abs(-2.5e1)", 29.0),
            (" 1.5e3/ .5 ", 3000.0),
        ] {
            assert_eq!(evaluate(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused_with_its_place() {
        let deep = format!("{}1{}", "(".repeat(65), ")".repeat(65));
        let long = "1+".repeat(600);
        for (text, why) in [
            ("", "ends"),
            ("1 +", "ends"),
            ("1 2", "character 3"),
            ("(1", "`)`"),
            ("system(1)", "`system`"),
            ("1/0", "finite"),
            ("9^9^9", "finite"),
            ("sqrt(-1)", "finite"),
            ("1 + é", "character"),
            (deep.as_str(), "deeper"),
            (long.as_str(), "longer"),
        ] {
            let error = evaluate(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    /// An expression together with its value, computed beside it.
    #[derive(Debug, Clone)]
    struct Known(String, f64);

    fn known() -> impl Strategy<Value = Known> {
        let leaf = (0_u32..10_000).prop_map(|n| Known(n.to_string(), f64::from(n)));
        leaf.prop_recursive(6, 64, 2, |inner| {
            (inner.clone(), inner, 0..5_usize).prop_map(|(a, b, which)| {
                let (sign, value) = match which {
                    0 => ('+', a.1 + b.1),
                    1 => ('-', a.1 - b.1),
                    2 => ('*', a.1 * b.1),
                    3 => ('/', a.1 / b.1),
                    _ => ('%', a.1 % b.1),
                };
                Known(format!("({} {sign} {})", a.0, b.0), value)
            })
        })
    }

    proptest! {
        #[test]
        fn every_expression_has_the_value_of_its_tree(Known(text, value) in known()) {
            prop_assume!(text.len() <= 1000);
            match evaluate(&text) {
                // A part that is not finite is refused, whatever the whole would be.
                Err(error) => prop_assert!(error.contains("finite"), "{}: {}", text, error),
                Ok(found) => prop_assert_eq!(found.to_bits(), value.to_bits(), "{}", text),
            }
        }

        #[test]
        fn nothing_makes_it_fall_over(text in "[-0-9+*/%^(). a-z]{0,200}|\\PC{0,80}") {
            let _ = evaluate(&text);
        }
    }
}
