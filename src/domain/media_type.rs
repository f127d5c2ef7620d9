//! Media type: sniffed from a file's content. A client's claim is ignored, because a browser would
//! trust it.

/// Bytes of the header that identify a type.
const HEAD_BYTES: usize = 12;

/// Known types. Whatever could hold a script is one of the last two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
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
    /// UTF-8, including HTML and SVG.
    Text,
    /// Anything else.
    Bytes,
}

impl MediaType {
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

    /// May a browser show it inline? Raster images only.
    pub fn is_image(media_type: &str) -> bool {
        [Self::Png, Self::Jpeg, Self::Gif, Self::Webp]
            .iter()
            .any(|image| image.as_str() == media_type)
    }
}

/// Sniffs a file chunk by chunk.
#[derive(Debug, Default)]
pub struct Sniffer {
    head: Vec<u8>,
    /// Start of a character that continues in the next chunk.
    partial: Vec<u8>,
    is_binary: bool,
}

impl Sniffer {
    /// Reads the next chunk.
    pub fn feed(&mut self, piece: &[u8]) {
        let missing = HEAD_BYTES.saturating_sub(self.head.len());
        self.head.extend(piece.iter().take(missing));
        if self.is_binary || piece.is_empty() {
            return;
        }
        if piece.contains(&0) {
            self.is_binary = true;
            return;
        }
        let joined;
        let text = if self.partial.is_empty() {
            piece
        } else {
            joined = [std::mem::take(&mut self.partial).as_slice(), piece].concat();
            &joined
        };
        if let Err(error) = std::str::from_utf8(text) {
            // No length means that the chunk ends within a character.
            self.is_binary = error.error_len().is_some();
            self.partial = text[error.valid_up_to()..].to_vec();
        }
    }

    /// The type, once the whole file was read.
    pub fn media_type(&self) -> MediaType {
        match self.head.as_slice() {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => MediaType::Png,
            [0xff, 0xd8, 0xff, ..] => MediaType::Jpeg,
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => MediaType::Gif,
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => MediaType::Webp,
            [b'%', b'P', b'D', b'F', b'-', ..] => MediaType::Pdf,
            _ if !self.is_binary && self.partial.is_empty() => MediaType::Text,
            _ => MediaType::Bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(pieces: &[&[u8]]) -> MediaType {
        let mut sniffer = Sniffer::default();
        for piece in pieces {
            sniffer.feed(piece);
        }
        sniffer.media_type()
    }

    #[test]
    fn files_are_recognised_by_their_first_bytes() {
        for (content, media) in [
            (b"\x89PNG\r\n\x1a\n....".as_slice(), MediaType::Png),
            (b"\xff\xd8\xff\xe0", MediaType::Jpeg),
            (b"GIF89a...", MediaType::Gif),
            (b"RIFF\x10\x00\x00\x00WEBPVP8 ", MediaType::Webp),
            (b"%PDF-1.7\n", MediaType::Pdf),
            (
                b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
                MediaType::Text,
            ),
            (b"<!doctype html><script>1</script>", MediaType::Text),
            (b"", MediaType::Text),
            (b"a\0b", MediaType::Bytes),
            (b"\x89PN", MediaType::Bytes),
            (b"\xff\xfe", MediaType::Bytes),
        ] {
            assert_eq!(kind(&[content]), media, "{content:?}");
            let bytes: Vec<&[u8]> = content.chunks(1).collect();
            assert_eq!(kind(&bytes), media, "{content:?} byte by byte");
        }
    }

    #[test]
    fn text_may_be_split_anywhere_but_cut_off_nowhere() {
        let text = "a é € 👩‍💻".as_bytes();
        for cut in 0..text.len() {
            let (one, other) = text.split_at(cut);
            assert_eq!(kind(&[one, other]), MediaType::Text, "cut at {cut}");
        }
        assert_eq!(kind(&[&text[..text.len() - 1]]), MediaType::Bytes);
    }
}
