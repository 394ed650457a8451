//! Pure except for reading: the tensors of a file in safetensors format.
//!
//! The format is: the header's length as eight bytes, little endian. Then the header as JSON,
//! with each tensor's type, shape and offsets. Then the data
//! (<https://github.com/huggingface/safetensors>). Offsets are compared with the size of the file
//! before anything is read. It must never allocate more than the size of the file, whatever the
//! header claims.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::EmbeddingModelError;

/// The most bytes of a header. That of a large model has some tens of thousands.
const HEADER_BYTES_MAX: u64 = 4 << 20;

/// The header's entry that is not a tensor.
const METADATA: &str = "__metadata__";

/// The type, shape and offsets of a tensor.
#[derive(Debug, Deserialize)]
struct TensorPlace {
    dtype: String,
    shape: Vec<usize>,
    /// The start and end, in bytes of the data.
    data_offsets: (u64, u64),
}

/// An entry of the header.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum HeaderEntry {
    Tensor(TensorPlace),
    Text(IgnoredAny),
}

/// The tensors of a file.
#[derive(Debug)]
pub(crate) struct Tensors<R> {
    file: R,
    places: HashMap<String, TensorPlace>,
    /// The start and the length of the data, in bytes.
    data_from: u64,
    data_bytes: u64,
}

impl<R: Read + Seek> Tensors<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// Returns [`EmbeddingModelError::Weights`] if the header is not valid.
    pub(crate) fn open(mut file: R) -> Result<Self, EmbeddingModelError> {
        let bytes = file.seek(SeekFrom::End(0)).map_err(read_failed)?;
        file.rewind().map_err(read_failed)?;
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(read_failed)?;
        let length = u64::from_le_bytes(length);
        if length > HEADER_BYTES_MAX.min(bytes.saturating_sub(8)) {
            return Err(unusable(format!("its header claims {length} bytes")));
        }
        let mut header = Vec::new();
        file.by_ref().take(length).read_to_end(&mut header).map_err(read_failed)?;
        let entries: HashMap<String, HeaderEntry> = serde_json::from_slice(&header)
            .map_err(|error| unusable(format!("its header is none: {error}")))?;
        let data_from = 8 + length;
        let tensors = entries.into_iter().filter_map(|(name, entry)| match entry {
            HeaderEntry::Tensor(place) => Some((name, place)),
            HeaderEntry::Text(IgnoredAny) => None,
        });
        let places = tensors.filter(|(name, _)| name != METADATA).collect();
        Ok(Self { file, places, data_from, data_bytes: bytes - data_from })
    }

    /// Returns the shape of a tensor.
    ///
    /// # Errors
    /// Fails if there is no tensor of this name.
    pub(crate) fn shape(&self, name: &str) -> Result<&[usize], EmbeddingModelError> {
        self.places
            .get(name)
            .map(|place| &place.shape[..])
            .ok_or_else(|| unusable(format!("it has no {name}")))
    }

    /// Reads the numbers of a tensor of this shape.
    ///
    /// # Errors
    /// Fails if there is no such tensor, its shape differs, or its numbers are not 32-bit floats.
    pub(crate) fn read(
        &mut self,
        name: &str,
        shape: &[usize],
    ) -> Result<Vec<f32>, EmbeddingModelError> {
        let found = self.shape(name)?;
        if found != shape {
            return Err(unusable(format!("{name} has the shape {found:?}, and not {shape:?}")));
        }
        let place = &self.places[name];
        if place.dtype != "F32" {
            let dtype = &place.dtype;
            return Err(unusable(format!("{name} has numbers of {dtype}; only F32 is read")));
        }
        let (from, to) = place.data_offsets;
        let count = shape.iter().try_fold(4_usize, |bytes, side| bytes.checked_mul(*side));
        let wanted = count.and_then(|bytes| u64::try_from(bytes).ok());
        if from > to || to > self.data_bytes || Some(to - from) != wanted {
            return Err(unusable(format!("{name} does not lie where it says")));
        }
        self.file.seek(SeekFrom::Start(self.data_from + from)).map_err(read_failed)?;
        // Not more than the length of the file.
        let count = shape.iter().product();
        let mut numbers = Vec::with_capacity(count);
        let mut bytes = [0; 4];
        for _ in 0..count {
            self.file.read_exact(&mut bytes).map_err(read_failed)?;
            numbers.push(f32::from_le_bytes(bytes));
        }
        match numbers.iter().all(|number| number.is_finite()) {
            true => Ok(numbers),
            false => Err(unusable(format!("{name} has a number that is none"))),
        }
    }
}

fn unusable(why: String) -> EmbeddingModelError {
    EmbeddingModelError::Weights { why }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn read_failed(error: std::io::Error) -> EmbeddingModelError {
    unusable(format!("it cannot be read: {error}"))
}

/// Returns a file of these tensors.
#[cfg(test)]
pub(crate) fn file_of(tensors: &[(&str, &[usize], Vec<f32>)]) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut data = Vec::new();
    for (name, shape, numbers) in tensors {
        let from = data.len();
        data.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        let to = data.len();
        entries.push(format!(
            "\"{name}\":{{\"dtype\":\"F32\",\"shape\":{shape:?},\"data_offsets\":[{from},{to}]}}"
        ));
    }
    let header = format!("{{\"__metadata__\":{{\"format\":\"pt\"}},{}}}", entries.join(","));
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    #[test]
    fn a_tensor_comes_back_and_what_does_not_fit_is_told() {
        let file =
            file_of(&[("a", &[2, 2], vec![1.0, 2.0, 3.0, 4.0]), ("b", &[1], vec![f32::NAN])]);
        let mut tensors = Tensors::open(Cursor::new(&file)).unwrap();
        assert_eq!(tensors.read("a", &[2, 2]).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        for (name, shape) in [("a", &[4][..]), ("b", &[1]), ("c", &[1])] {
            let error = tensors.read(name, shape).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_file_of_any_bytes_is_read_or_refused(
            cut in 0..200_usize, at in 0..200_usize, byte in any::<u8>(),
        ) {
            let mut file = file_of(&[("a", &[2, 3], vec![1.0; 6])]);
            let at = at % file.len();
            file[at] = byte;
            file.truncate(cut.max(1));
            if let Ok(mut tensors) = Tensors::open(Cursor::new(&file)) {
                drop(tensors.read("a", &[2, 3]));
            }
        }
    }
}
