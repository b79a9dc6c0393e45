//! Tests SVG and MathML in pages: where they begin and end, and what is a link in them.

use super::{everything, listed};
use crate::links::Settings;

/// Section 13.2.6.5: in foreign content titles and styles contain markup, `/>` closes, CDATA
/// exists.
#[test]
fn drawings() {
    let cases: [(&str, &[&str], &str); 19] = [
        ("<svg><title/><a href=x>", &["anchor x"], "an empty title is closed"),
        ("<title/><a href=x>", &[], "in HTML it isn't"),
        ("<svg><style><a href=x></style>", &["anchor x"], "a style holds markup"),
        ("<svg><script/><a href=x>", &["anchor x"], "an empty script is closed"),
        ("<svg/><title><a href=x>", &[], "a closed drawing holds nothing"),
        ("<svg a=b/><title><a href=x>", &["anchor x"], "the slash is the value's"),
        ("<svg><![CDATA[<a href=x>]]><a href=y>", &["anchor y"], "CDATA"),
        ("<![CDATA[<a href=x>]]><a href=y>", &["anchor y"], "in HTML a comment to the first `>`"),
        ("<![CDATA[>]]><a href=y>", &["anchor y"], "in HTML a comment to the first `>`"),
        ("<svg></svg><style><a href=x>", &[], "after the drawing"),
        ("<svg><svg></svg><style><a href=x>", &["anchor x"], "an inner drawing"),
        ("<svg><foreignObject><style><a href=x>", &[], "HTML in a drawing"),
        ("<svg><desc></desc><style><a href=x>", &["anchor x"], "back in the drawing"),
        ("<svg><p><style><a href=x>", &[], "a paragraph ends the drawing"),
        ("<div><svg></div><style><a href=x>", &[], "so does the end of what it stood in"),
        ("<math><mi><style><a href=x>", &[], "text of a formula is HTML"),
        ("<math><annotation-xml encoding='TEXT/html'><style><a href=x>", &[], "so is this"),
        ("<math><annotation-xml><style><a href=x>", &["anchor x"], "and this isn't"),
        ("<svg><a xlink:href=x></svg><a xlink:href=y>", &["anchor x"], "links of older drawings"),
    ];
    for (html, expected, why) in cases {
        assert_eq!(listed(html, &Settings::default()), expected, "{html}: {why}");
    }
    let deep = "<svg>".repeat(1_000) + &"</svg>".repeat(1_000) + "<style><a href=x>";
    assert_eq!(listed(&deep, &Settings::default()), [""; 0], "deep drawings are left at last");
}

/// HTML elements have no meaning inside SVG and MathML; links and resources of SVG do.
#[test]
fn links_of_drawings() {
    let cases: [(&str, &[&str], &str); 24] = [
        ("<svg><base href=/b/></svg><a href=x>", &["anchor x"], "no base"),
        ("<svg><link rel=next href=x>", &[], "no link"),
        ("<svg><link rel=stylesheet href=x>", &[], "no style sheet"),
        ("<svg><iframe src=x></iframe>", &[], "no frame"),
        ("<svg><frame src=x>", &[], "no frame"),
        ("<svg><area href=x>", &[], "no area"),
        ("<svg><form action=x>", &[], "no form"),
        ("<svg><video src=x poster=y>", &[], "no media"),
        ("<svg><script src=x></script>", &[], "SVG 2 5.9: scripts have href"),
        ("<svg><script href=x></script>", &["embed x"], "SVG 2 5.9"),
        ("<svg><image href=x>", &["embed x"], "SVG 2 12.3"),
        ("<svg><image xlink:href=x>", &["embed x"], "SVG 1.1"),
        ("<svg><IMAGE href=x xlink:href=y>", &["embed x"], "SVG 2 16.1.5: href first"),
        ("<svg><image src=x>", &[], "that is HTML's"),
        ("<svg><use href='x#y'>", &["embed x#y"], "SVG 2 5.6"),
        ("<svg><filter><feImage href=x>", &["embed x"], "Filter Effects 9.15"),
        ("<svg><a href=x rel=nofollow>", &["anchor x!"], "SVG 2 16.2"),
        ("<svg><title><base href=/b/><a href=x>", &["anchor x"], "HTML in a title"),
        ("<svg><foreignObject><iframe src=x>", &["frame x"], "HTML in a drawing"),
        ("<svg><desc><link rel=next href=x>", &["related x"], "HTML in a description"),
        ("<svg><img src=x>", &["embed x"], "13.2.6.5: it ends the drawing"),
        ("<image href=x><use href=y>", &[], "in HTML neither is any"),
        ("<math href=w><mrow href=x><mi href=y></mi><a href=z>", &["w", "x", "y", "z"], "links"),
        ("<math><mi><area href=x></mi><area href=y>", &["x", "y"], "HTML in a formula"),
    ];
    for (html, expected, why) in cases {
        let found = listed(html, &everything());
        let expected: Vec<String> = match html.starts_with("<math") {
            true => expected.iter().map(|link| format!("anchor {link}")).collect(),
            false => expected.iter().map(|&link| link.to_owned()).collect(),
        };
        assert_eq!(found, expected, "{html}: {why}");
    }
    let requisites = "<svg><image href=x><use href=y><a href=z>";
    assert_eq!(listed(requisites, &Settings::default()), ["anchor z"]);
}
