//! Texts of strangers in CSV and HTML.

/// Returns a text as a cell of CSV, in quotes if it needs them (RFC 4180).
pub(super) fn csv(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Returns a text that a spreadsheet doesn't take for a formula: if it begins like one, with a `'`
/// before it.
pub(super) fn harmless(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    if is_formula { format!("'{text}") } else { text.to_owned() }
}

/// Returns a text for a page or an attribute of HTML.
pub(super) fn html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_strangers_stay_texts() {
        let csv = |text: &str| csv(&harmless(text));
        assert_eq!(csv("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\"");
        assert_eq!((csv("-1+1"), csv("a-b"), csv("")), ("'-1+1".into(), "a-b".into(), "".into()));
        assert_eq!(csv("a\r\nb"), "\"a\r\nb\"");
        assert_eq!(html("<a b='c'>&\""), "&lt;a b=&#39;c&#39;&gt;&amp;&quot;");
    }
}
