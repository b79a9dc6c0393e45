//! Requisites of a page: what a browser loads to show it, in elements and attributes of HTML and
//! SVG.
//!
//! | found | in |
//! |---|---|
//! | `src` | `img`, `script`, `source`, `video`, `audio`, `track`, `embed`, `bgsound` |
//! | `src` | `input` of the type `image` |
//! | `srcset`; `imagesrcset`; `poster` | `img`, `source`; `link`; `video` |
//! | `data-src`, `data-srcset` | `img`, `source`, `video`, `iframe`: scripts load these later |
//! | `data` | `object`; if it has a `codebase`, also relative to that, as in HTML 4 |
//! | `href` | `link` to style sheets, icons, manifest, preload, modulepreload |
//! | `background` | `body`, `table` and the parts of tables |
//! | `href`, `xlink:href` | `image`, `use`, `feImage`, `script` of SVG |
//! | CSS | `style` elements, `style` attributes, files (`links::css`) |
//! | `srcdoc` | `iframe`: its links and requisites are those of the page |
//!
//! Elements in `noscript` and `template` are read like others.
//!
//! | not found | why |
//! |---|---|
//! | `rel=prefetch`, `prerender` | hints about the next page (HTML, 4.6.8.14) |
//! | `rel=dns-prefetch`, `preconnect` | open a connection, and load nothing |
//! | `cite`, `longdesc` | pages about a quotation or an image; browsers load neither |
//! | `ping` | receives a report of each click; a crawl clicks nothing |
//! | `data-href` and other `data-` attributes | have the meaning that a script gives them |
//! | `javascript:` and `data:` URLs | have no resource that could be fetched |
//! | references that are only a fragment | a part of the document itself |
//! | `rel=search`, feeds, `og:image` and other `meta` | for other programs than browsers |
//! | `fill`, `filter`, `mask` of SVG with `url()` | mostly a part of the document |
//! | `style` elements in SVG, scripts, import maps, manifests | their text is not searched |
//! | `base` in an `srcdoc` | its references are relative to the page |

use super::tags::{Attribute, ParsedTag, Tag, name_at};
use super::{Found, Kind, append_value, css, is_foreign};

/// The attributes that may be references on tags of any name.
pub(super) const ON_ANY_TAG: u32 = set(&[
    Attribute::Background,
    Attribute::FormAction,
    Attribute::Src,
    Attribute::Srcdoc,
    Attribute::Style,
]);

/// Those of [`ON_ANY_TAG`] that [`ParsedTag::file`] doesn't evaluate.
pub(super) const BESIDE: u32 = ON_ANY_TAG & !set(&[Attribute::Src]);

/// Elements on which `background` is an image (HTML, 15.3.3 and 15.3.8).
const WITH_BACKGROUND: [&[u8]; 8] =
    [b"body", b"table", b"tbody", b"td", b"tfoot", b"th", b"thead", b"tr"];

/// SVG elements that embed or run the resource they refer to.
const SVG_RESOURCES: [&[u8]; 4] = [b"image", b"use", b"feimage", b"script"];

/// The maximum length of an `srcdoc` attribute, in bytes.
const SRCDOC_BYTES_MAX: usize = 256 << 10;

const fn set(attributes: &[Attribute]) -> u32 {
    let (mut set, mut index) = (0, 0);
    while index < attributes.len() {
        set |= 1 << attributes[index] as u32;
        index += 1;
    }
    set
}

impl<'a> ParsedTag<'a> {
    /// Stores the resource that an HTML element of a relevant tag embeds.
    pub(super) fn embed(self, found: &mut Found) {
        match self.tag {
            Tag::Input if !self.is_image_button(found) => return,
            Tag::Object => return self.object(found),
            Tag::Audio | Tag::Embed | Tag::Image | Tag::Img | Tag::Input => {}
            Tag::Script | Tag::Source | Tag::Track | Tag::Video => {}
            _ => return,
        }
        self.push(found, Kind::Embed, false, Attribute::Src);
        if matches!(self.tag, Tag::Image | Tag::Img | Tag::Source | Tag::Video) {
            self.push(found, Kind::Embed, false, Attribute::DataSrc);
        }
        match self.tag {
            Tag::Image | Tag::Img | Tag::Source => {
                self.push_set(found, Attribute::Srcset);
                self.push_set(found, Attribute::DataSrcset);
            }
            Tag::Video => self.push(found, Kind::Embed, false, Attribute::Poster),
            _ => {}
        }
    }

    fn is_image_button(self, found: &mut Found) -> bool {
        self.value(found, Attribute::Type).is_some_and(|kind| kind.eq_ignore_ascii_case(b"image"))
    }

    /// Stores the resource of an `object`. Browsers of today ignore `codebase`.
    fn object(self, found: &mut Found) {
        self.push(found, Kind::Embed, false, Attribute::Data);
        let Some(base) = self.value(found, Attribute::Codebase) else { return };
        let Some(data) = self.value(found, Attribute::Data) else { return };
        let (base, data) = (base.trim_ascii(), data.trim_ascii());
        let is_absolute = is_foreign(data) || data.starts_with(b"/");
        let is_web = data.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"http"));
        if base.is_empty() || data.is_empty() || is_absolute || is_web && data.contains(&b':') {
            return;
        }
        let folder = base.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let joined = [&base[..folder], data].concat();
        found.push_text(self.settings, Kind::Embed, false, &joined);
    }

    /// Stores the target of a frame.
    pub(super) fn frame(self, found: &mut Found) {
        self.push(found, Kind::Frame, false, Attribute::Src);
        if self.settings.requisites {
            self.push(found, Kind::Frame, false, Attribute::DataSrc);
        }
    }

    /// Stores the resource of the SVG element `name`, whose reference is `attribute`.
    pub(super) fn svg_resource(self, name: &[u8], attribute: Attribute, found: &mut Found) {
        if SVG_RESOURCES.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            self.push(found, Kind::Embed, false, attribute);
        }
        self.style(found);
    }

    /// Stores the references of attributes that may be on tags of any name. `posts` is true if
    /// the form around the tag is sent by POST.
    #[cold]
    pub(super) fn file_beside(self, posts: bool, found: &mut Found) {
        let name = name_at(self.text, self.name_start);
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        if self.settings.requisites {
            if WITH_BACKGROUND.into_iter().any(is) {
                self.push(found, Kind::Embed, false, Attribute::Background);
            }
            if is(b"bgsound") {
                self.push(found, Kind::Embed, false, Attribute::Src);
            }
            self.style(found);
        }
        if self.settings.forms
            && (is(b"button") || is(b"input"))
            && self.raw(Attribute::FormAction).is_some()
            && self.sends_by_get(found, Attribute::FormMethod).unwrap_or(!posts)
        {
            self.push(found, Kind::Form, false, Attribute::FormAction);
        }
    }

    /// Stores the references of a `style` attribute. Without a parenthesis it has none.
    fn style(self, found: &mut Found) {
        let Some(raw) = self.raw(Attribute::Style) else { return };
        if memchr::memchr2(b'(', b'&', raw).is_some()
            && let Some(value) = self.value(found, Attribute::Style)
        {
            css::scan_declarations(&value, self.settings, found);
        }
    }

    /// Returns whether the text of a `style` element is CSS.
    pub(super) fn is_css(self, found: &mut Found) -> bool {
        let kind = self.value(found, Attribute::Type);
        kind.is_none_or(|kind| kind.is_empty() || kind.eq_ignore_ascii_case(b"text/css"))
    }

    /// Returns the document in an `srcdoc` attribute; `None` if there is none or it is too long.
    pub(super) fn srcdoc(self, found: &mut Found) -> Option<Vec<u8>> {
        let raw = self.raw(Attribute::Srcdoc)?;
        if raw.len() > SRCDOC_BYTES_MAX {
            found.cut.values += 1;
            return None;
        }
        let mut text = Vec::new();
        append_value(self.charset, raw, &mut text);
        Some(text)
    }
}
