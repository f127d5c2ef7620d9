//! What kind of file something is, by what is in it. What a client claims about it counts for
//! nothing: a browser would believe it.

/// How many bytes at the beginning tell the kinds apart.
const HEAD_BYTES: usize = 12;

/// The kinds that are known. Everything that could hold a script is among the last two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// A PNG image.
    Png,
    /// A JPEG image.
    Jpeg,
    /// A GIF image.
    Gif,
    /// A WebP image.
    Webp,
    /// A PDF document.
    Pdf,
    /// UTF-8, also if it happens to be HTML or SVG.
    Text,
    /// Anything else.
    Bytes,
}

impl Media {
    /// Its media type.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Pdf => "application/pdf",
            Self::Text => "text/plain",
            Self::Bytes => "application/octet-stream",
        }
    }

    /// May a browser show it in place? Images of pixels only.
    pub fn is_image(media_type: &str) -> bool {
        [Self::Png, Self::Jpeg, Self::Gif, Self::Webp]
            .iter()
            .any(|image| image.as_str() == media_type)
    }
}

/// Looks at a file piece by piece.
#[derive(Debug, Default)]
pub struct Sniffer {
    head: Vec<u8>,
    /// The bytes of a character whose rest is in the next piece.
    begun: Vec<u8>,
    not_text: bool,
}

impl Sniffer {
    /// Looks at the next piece.
    pub fn look(&mut self, piece: &[u8]) {
        let missing = HEAD_BYTES.saturating_sub(self.head.len());
        self.head.extend(piece.iter().take(missing));
        if self.not_text || piece.is_empty() {
            return;
        }
        if piece.contains(&0) {
            self.not_text = true;
            return;
        }
        let joined;
        let text = if self.begun.is_empty() {
            piece
        } else {
            joined = [std::mem::take(&mut self.begun).as_slice(), piece].concat();
            &joined
        };
        if let Err(error) = std::str::from_utf8(text) {
            // Without a length the fault is only that the text ends here.
            self.not_text = error.error_len().is_some();
            self.begun = text[error.valid_up_to()..].to_vec();
        }
    }

    /// What it was, now that all of it was seen.
    pub fn media(&self) -> Media {
        match self.head.as_slice() {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Media::Png,
            [0xff, 0xd8, 0xff, ..] => Media::Jpeg,
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Media::Gif,
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Media::Webp,
            [b'%', b'P', b'D', b'F', b'-', ..] => Media::Pdf,
            _ if !self.not_text && self.begun.is_empty() => Media::Text,
            _ => Media::Bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(pieces: &[&[u8]]) -> Media {
        let mut sniffer = Sniffer::default();
        for piece in pieces {
            sniffer.look(piece);
        }
        sniffer.media()
    }

    #[test]
    fn files_are_known_by_how_they_begin() {
        for (content, media) in [
            (b"\x89PNG\r\n\x1a\n....".as_slice(), Media::Png),
            (b"\xff\xd8\xff\xe0", Media::Jpeg),
            (b"GIF89a...", Media::Gif),
            (b"RIFF\x10\x00\x00\x00WEBPVP8 ", Media::Webp),
            (b"%PDF-1.7\n", Media::Pdf),
            (b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", Media::Text),
            (b"<!doctype html><script>1</script>", Media::Text),
            (b"", Media::Text),
            (b"a\0b", Media::Bytes),
            (b"\x89PN", Media::Bytes),
            (b"\xff\xfe", Media::Bytes),
        ] {
            assert_eq!(kind(&[content]), media, "{content:?}");
            let bytes: Vec<&[u8]> = content.chunks(1).collect();
            assert_eq!(kind(&bytes), media, "{content:?} byte by byte");
        }
    }

    #[test]
    fn text_may_be_cut_anywhere_but_at_its_end() {
        let text = "a é € 👩‍💻".as_bytes();
        for cut in 0..text.len() {
            let (one, other) = text.split_at(cut);
            assert_eq!(kind(&[one, other]), Media::Text, "cut at {cut}");
        }
        assert_eq!(kind(&[&text[..text.len() - 1]]), Media::Bytes);
    }
}
