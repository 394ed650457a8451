//! Pure: a file in a form, `multipart/form-data` of RFC 7578.

use bytes::Bytes;

/// The file of a form, and its path if there is one: that of the field `path`, else the file's
/// name. Nothing, where it is no such form.
pub(super) fn file(body: &Bytes, media: &str) -> Option<(Option<String>, Bytes)> {
    let boundary = media.split(';').find_map(|it| it.trim().strip_prefix("boundary="))?;
    let delimiter = format!("\r\n--{}", boundary.trim_matches('"'));
    let first = delimiter.trim_start().as_bytes();
    let mut at = find(body, first)? + first.len();
    let mut path = None;
    let mut name = None;
    let mut content = None;
    while body[at..].starts_with(b"\r\n") {
        let end = at + find(&body[at..], delimiter.as_bytes())?;
        let head_end = at + find(&body[at..end], b"\r\n\r\n")?;
        let head = std::str::from_utf8(&body[at..head_end]).ok()?;
        let part = body.slice(head_end + 4..end);
        match (parameter(head, "name")?, parameter(head, "filename")) {
            ("path", None) => path = Some(String::from_utf8(part.to_vec()).ok()?),
            (_, Some(called)) => (name, content) = (Some(called.to_owned()), Some(part)),
            ("content" | "file", None) => content = Some(part),
            _ => {}
        }
        at = end + delimiter.len();
    }
    Some((path.or(name), content?))
}

/// A parameter of what a part says of itself.
fn parameter<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = head.split_once(&format!("; {name}=\""))?;
    rest.split('"').next()
}

fn find(text: &[u8], sought: &[u8]) -> Option<usize> {
    text.windows(sought.len()).position(|at| at == sought)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_a_file_and_a_path_in_any_order() {
        let disposition = |rest| format!("Content-Disposition: form-data; {rest}\r\n\r\n");
        let named = disposition("name=\"path\"") + "/tmp/a";
        let sent = disposition("name=\"file\"; filename=\"b.txt\"") + "x\r\n--y\r\n\0";
        let content = Bytes::from("x\r\n--y\r\n\0");
        for (parts, path) in [
            (vec![&named, &sent], "/tmp/a"),
            (vec![&sent, &named], "/tmp/a"),
            (vec![&sent], "b.txt"),
        ] {
            let body: String = parts.iter().map(|part| format!("--line\r\n{part}\r\n")).collect();
            let body = Bytes::from(body + "--line--\r\n");
            for media in ["multipart/form-data; boundary=line", "x; boundary=\"line\""] {
                assert_eq!(file(&body, media), Some((Some(path.to_owned()), content.clone())));
            }
            for cut in 0..body.len() - "--line--\r\n".len() {
                let told = file(&body.slice(..cut), "x; boundary=line");
                assert!(told.is_none_or(|it| it.1 == content), "{cut}");
            }
        }
        for wrong in ["", "--line--\r\n", "--line\r\n\r\nx\r\n--line--", "--line\r\n"] {
            assert_eq!(file(&Bytes::from(wrong), "x; boundary=line"), None, "{wrong}");
        }
        assert_eq!(file(&Bytes::from("--\r\n"), "multipart/form-data"), None);
    }
}
