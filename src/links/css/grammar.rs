//! The part of CSS's grammar that decides which tokens are references.
//!
//! It tracks the blocks and functions that are open, and whether the position is in the prelude of
//! an at-rule, that is between its name and its block or semicolon.

use super::BLOCKS_MAX;
use cssparser::Token;

/// A block or function that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// `{`, or a list of declarations in an attribute.
    Curly,
    /// `[`.
    Square,
    /// `(`, or a function whose strings are no references.
    Round,
    /// A function whose strings are references.
    References,
}

/// The prelude of an at-rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prelude {
    /// The number of blocks that were open when the rule began.
    level: usize,
    /// True if the next value is the reference of an `@import`.
    is_import: bool,
}

/// The position in the grammar of one style sheet.
#[derive(Debug)]
pub(super) struct Grammar {
    /// The innermost open block is the last.
    open: Vec<Block>,
    /// The number of open blocks beyond the first [`BLOCKS_MAX`].
    deeper: usize,
    prelude: Option<Prelude>,
    /// True if an at-keyword would begin a rule here.
    may_begin: bool,
}

/// Returns whether a token opens a block or a function.
pub(super) fn is_opening(token: &Token<'_>) -> bool {
    use Token::{CurlyBracketBlock, Function, ParenthesisBlock, SquareBracketBlock};
    matches!(token, Function(_) | ParenthesisBlock | SquareBracketBlock | CurlyBracketBlock)
}

impl Grammar {
    /// Begins a style sheet.
    pub(super) fn of_sheet() -> Self {
        Self { open: Vec::new(), deeper: 0, prelude: None, may_begin: true }
    }

    /// Begins the list of declarations in a `style` attribute.
    pub(super) fn of_declarations() -> Self {
        Self { open: vec![Block::Curly], ..Self::of_sheet() }
    }

    /// Processes the next token. Calls `push` with the reference that it is, if it is one.
    pub(super) fn take(&mut self, token: &Token<'_>, push: impl FnOnce(&str)) {
        if matches!(token, Token::WhiteSpace(_) | Token::Comment(_) | Token::CDO | Token::CDC) {
            return;
        }
        let may_begin = std::mem::take(&mut self.may_begin);
        let is_import = self.prelude.as_mut().is_some_and(|it| std::mem::take(&mut it.is_import));
        let is_value = self.prelude.is_none() || is_import;
        match token {
            Token::AtKeyword(name) if may_begin => self.begin_rule(name),
            Token::UnquotedUrl(value) if is_value => push(value),
            Token::QuotedString(value) if is_import || self.last() == Some(Block::References) => {
                push(value);
            }
            Token::Function(name) => {
                let is_set = name.eq_ignore_ascii_case("image-set")
                    || name.eq_ignore_ascii_case("-webkit-image-set");
                let is_url = name.eq_ignore_ascii_case("url") || name.eq_ignore_ascii_case("src");
                let has_references = is_value && (is_url || is_set && !is_import);
                self.open(if has_references { Block::References } else { Block::Round });
            }
            Token::ParenthesisBlock => self.open(Block::Round),
            Token::SquareBracketBlock => self.open(Block::Square),
            Token::CurlyBracketBlock => {
                self.end_prelude();
                self.open(Block::Curly);
                self.may_begin = true;
            }
            Token::CloseParenthesis => {
                self.close(|block| matches!(block, Block::Round | Block::References));
            }
            Token::CloseSquareBracket => drop(self.close(|block| block == Block::Square)),
            Token::CloseCurlyBracket => self.may_begin = self.close(|block| block == Block::Curly),
            Token::Semicolon => {
                self.may_begin = self.end_prelude() || self.last() == Some(Block::Curly);
            }
            _ => {}
        }
    }

    fn begin_rule(&mut self, name: &str) {
        let level = self.open.len() + self.deeper;
        let is_import = level == 0 && name.eq_ignore_ascii_case("import");
        self.prelude.get_or_insert(Prelude { level, is_import });
    }

    /// Ends the prelude, if it is that of a rule in the innermost open block. Returns whether it
    /// is.
    fn end_prelude(&mut self) -> bool {
        let level = self.open.len() + self.deeper;
        self.prelude.take_if(|prelude| prelude.level == level).is_some()
    }

    /// Returns the innermost open block; `None` if there is none, or its kind isn't known.
    fn last(&self) -> Option<Block> {
        self.open.last().copied().filter(|_| self.deeper == 0)
    }

    fn open(&mut self, block: Block) {
        if self.open.len() < BLOCKS_MAX {
            self.open.push(block);
        } else {
            self.deeper += 1;
        }
    }

    /// Closes the innermost open block, if `is_it` is true for it: another bracket inside a block
    /// means nothing (CSS Syntax 3, section 5.4.8). Returns whether it was closed.
    fn close(&mut self, is_it: impl Fn(Block) -> bool) -> bool {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else if self.open.last().is_some_and(|last| is_it(*last)) {
            self.open.pop();
        } else {
            return false;
        }
        let level = self.open.len() + self.deeper;
        self.prelude.take_if(|prelude| prelude.level > level);
        true
    }
}
