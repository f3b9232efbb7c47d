//! Append-only segments: a magic line, then frames of length, CRC-32 and one postcard record.
//!
//! A kill costs what was not yet synced: at most the last second. A torn last frame is expected
//! after a kill, left out and said; a frame whose checksum is wrong ends the segment, and is said.

use super::RunDirError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read as _, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// Where a segment is closed and the next one begun, bytes.
pub const SEGMENT: u64 = 64 << 20;
const MAGIC: &[u8; 8] = b"HOPSEG3\n";
/// A longer frame cannot be one of ours: the length itself is damaged.
const MAX_FRAME: usize = 64 << 20;
/// Length and checksum before a record.
const HEAD: usize = 8;
/// What is written at once. A frame that fits is refused whole by a full disk, and the segment stays sound.
const BUFFER: usize = 64 << 10;

/// Writes records of one kind into numbered segments of a directory.
#[derive(Debug)]
pub struct SegmentWriter<T> {
    dir: PathBuf,
    kind: &'static str,
    next: u32,
    open: Option<BufWriter<File>>,
    written: u64,
    limit: u64,
    scratch: Vec<u8>,
    /// Appended since the last sync.
    waiting: u64,
    record: PhantomData<fn(&T)>,
}

impl<T: Serialize> SegmentWriter<T> {
    /// Segments named `KIND-NNNNNN.seg` in `dir`, each closed at about `limit` bytes. Continues
    /// after those that are there.
    ///
    /// # Errors
    /// The directory cannot be made or listed.
    pub fn create(dir: &Path, kind: &'static str, limit: u64) -> Result<Self, RunDirError> {
        fs::create_dir_all(dir).map_err(RunDirError::io(dir))?;
        let next = list(dir, kind)?.last().map_or(0, |(number, _)| number + 1);
        Ok(Self {
            dir: dir.to_owned(),
            kind,
            next,
            open: None,
            written: 0,
            limit,
            scratch: Vec::new(),
            waiting: 0,
            record: PhantomData,
        })
    }

    /// Appends one record. It is safe after the next [`Self::sync`].
    ///
    /// # Errors
    /// The disk is full or gone; the record is then not in the segment. Those before it are, or wait.
    pub fn append(&mut self, record: &T) -> Result<(), RunDirError> {
        if self.open.is_none() || self.written >= self.limit {
            self.roll()?;
        }
        let path = self.current();
        let damaged = |what: String| RunDirError::Damaged {
            path: path.clone(),
            what,
        };
        let mut frame = std::mem::take(&mut self.scratch);
        frame.clear();
        frame.extend_from_slice(&[0; HEAD]);
        let mut frame = postcard::to_extend(record, frame).map_err(|e| damaged(e.to_string()))?;
        if let Some((head, body)) = frame.split_at_mut_checked(HEAD) {
            let length = u32::try_from(body.len()).map_err(|e| damaged(e.to_string()))?;
            let (first, second) = head.split_at_mut(HEAD / 2);
            first.copy_from_slice(&length.to_le_bytes());
            second.copy_from_slice(&crc32fast::hash(body).to_le_bytes());
        }
        if let Some(file) = self.open.as_mut() {
            let taken = file.write_all(&frame);
            if taken.is_err() && file.buffer().is_empty() {
                // A frame too long for the buffer broke off: what followed it in this segment could not be read.
                self.open = None;
            }
            taken.map_err(RunDirError::io(&path))?;
            self.written += frame.len() as u64;
            self.waiting += 1;
        }
        self.scratch = frame;
        Ok(())
    }

    /// Records appended since the last sync: lost if the process ends before another one.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    fn current(&self) -> PathBuf {
        self.dir.join(format!(
            "{}-{:06}.seg",
            self.kind,
            self.next.saturating_sub(1)
        ))
    }

    fn roll(&mut self) -> Result<(), RunDirError> {
        self.sync()?;
        self.next += 1;
        let path = self.current();
        let file = File::create_new(&path).map_err(RunDirError::io(&path))?;
        let mut file = BufWriter::with_capacity(BUFFER, file);
        file.write_all(MAGIC).map_err(RunDirError::io(&path))?;
        self.open = Some(file);
        self.written = MAGIC.len() as u64;
        Ok(())
    }

    /// Brings everything appended so far onto the disk.
    ///
    /// # Errors
    /// The disk is full or gone.
    pub fn sync(&mut self) -> Result<(), RunDirError> {
        let path = self.current();
        let Some(file) = self.open.as_mut() else {
            return Ok(());
        };
        file.flush()
            .and_then(|()| file.get_ref().sync_data())
            .map_err(RunDirError::io(&path))?;
        self.waiting = 0;
        Ok(())
    }
}

/// Reads the records of one segment, one at a time.
#[derive(Debug)]
pub struct SegmentReader<T> {
    path: PathBuf,
    file: BufReader<File>,
    /// The next frame.
    at: u64,
    /// Where the segment ended when it was opened: a tap may be writing on.
    end: u64,
    body: Vec<u8>,
    record: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> SegmentReader<T> {
    /// Opens a segment, as long as it is now.
    ///
    /// # Errors
    /// It cannot be read, or is no segment.
    pub fn open(path: &Path) -> Result<Self, RunDirError> {
        let end = length(path)?;
        Self::open_up_to(path, end)
    }

    fn open_up_to(path: &Path, end: u64) -> Result<Self, RunDirError> {
        let file = File::open(path).map_err(RunDirError::io(path))?;
        let mut file = BufReader::with_capacity(BUFFER, file);
        let mut magic = [0; MAGIC.len()];
        let short = end < MAGIC.len() as u64;
        if !short {
            file.read_exact(&mut magic).map_err(RunDirError::io(path))?;
        }
        if end > 0 && magic != *MAGIC {
            let what = match magic.starts_with(b"HOPSEG") {
                true => "a segment of another version of hopscope; read it with the version that made it",
                false => "not a hopscope segment (wrong magic)",
            }
            .to_owned();
            return Err(RunDirError::Damaged {
                path: path.to_owned(),
                what,
            });
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            at: MAGIC.len() as u64,
            end,
            body: Vec::new(),
            record: PhantomData,
        })
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// The rest of the segment is torn or damaged; says from which byte on. After that it is at its end.
    pub fn next_record(&mut self) -> Result<Option<T>, RunDirError> {
        if self.at >= self.end {
            return Ok(None);
        }
        let (at, left) = (self.at, self.end - self.at);
        self.at = self.end;
        let damaged = |what: &str| RunDirError::Damaged {
            path: self.path.clone(),
            what: format!("{what} at byte {at}: {left} bytes left out"),
        };
        let Some(room) = left.checked_sub(HEAD as u64) else {
            return Err(damaged("torn frame"));
        };
        let mut head = [[0; HEAD / 2]; 2];
        self.file
            .read_exact(head.as_flattened_mut())
            .map_err(RunDirError::io(&self.path))?;
        let [length, sum] = head.map(u32::from_le_bytes);
        if length as usize > MAX_FRAME {
            return Err(damaged("impossible frame length"));
        }
        if u64::from(length) > room {
            return Err(damaged("torn frame"));
        }
        self.body.resize(length as usize, 0);
        self.file
            .read_exact(&mut self.body)
            .map_err(RunDirError::io(&self.path))?;
        if crc32fast::hash(&self.body) != sum {
            return Err(damaged("wrong checksum"));
        }
        let record =
            postcard::from_bytes(&self.body).map_err(|_| damaged("record of another layout"))?;
        self.at = at + (HEAD as u64) + u64::from(length);
        Ok(Some(record))
    }
}

fn length(path: &Path) -> Result<u64, RunDirError> {
    let told = fs::metadata(path).map_err(RunDirError::io(path))?;
    Ok(told.len())
}

/// The records of all segments of a kind, one after the other, as they were when it was opened. However many
/// they are, it holds one.
#[derive(Debug)]
pub struct Records<T> {
    segments: Vec<(PathBuf, u64)>,
    /// The number of the next segment to open.
    next: usize,
    open: Option<SegmentReader<T>>,
    losses: Vec<String>,
}

impl<T: DeserializeOwned> Records<T> {
    /// The segments `KIND-NNNNNN.seg` of `dir`.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn open(dir: &Path, kind: &str) -> Result<Self, RunDirError> {
        let all = list(dir, kind)?.into_iter();
        let segments = all.map(|(_, path)| length(&path).map(|length| (path, length)));
        Ok(Self {
            segments: segments.collect::<Result<_, _>>()?,
            next: 0,
            open: None,
            losses: Vec::new(),
        })
    }

    /// None at all.
    #[must_use]
    pub fn none() -> Self {
        Self {
            segments: Vec::new(),
            next: 0,
            open: None,
            losses: Vec::new(),
        }
    }

    /// The same records once more, from the first.
    #[must_use]
    pub fn again(&self) -> Self {
        Self {
            segments: self.segments.clone(),
            ..Self::none()
        }
    }

    /// What could not be read so far, each with its file.
    #[must_use]
    pub fn losses(&self) -> &[String] {
        &self.losses
    }

    /// The same, when no more is read.
    #[must_use]
    pub fn into_losses(self) -> Vec<String> {
        self.losses
    }
}

impl<T: DeserializeOwned> Iterator for Records<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            let Some(reader) = &mut self.open else {
                let (path, length) = self.segments.get(self.next)?;
                self.next += 1;
                match SegmentReader::open_up_to(path, *length) {
                    Ok(reader) => self.open = Some(reader),
                    Err(error) => self.losses.push(error.to_string()),
                }
                continue;
            };
            match reader.next_record() {
                Ok(Some(record)) => return Some(record),
                Ok(None) => self.open = None,
                Err(error) => {
                    self.losses.push(error.to_string());
                    self.open = None;
                }
            }
        }
    }
}

/// The segments of a kind in a directory, in order.
pub(super) fn list(dir: &Path, kind: &str) -> Result<Vec<(u32, PathBuf)>, RunDirError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(RunDirError::io(dir))? {
        let path = entry.map_err(RunDirError::io(dir))?.path();
        let number = path.file_name().and_then(|n| n.to_str()).and_then(|n| {
            n.strip_prefix(kind)?
                .strip_prefix('-')?
                .strip_suffix(".seg")?
                .parse()
                .ok()
        });
        if let Some(number) = number {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Every record of every segment of a kind; what could not be read is named in the second part.
pub(super) fn read_all<T: DeserializeOwned>(
    dir: &Path,
    kind: &str,
) -> Result<(Vec<T>, Vec<String>), RunDirError> {
    let mut records = Records::open(dir, kind)?;
    let all = records.by_ref().collect();
    Ok((all, records.into_losses()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer whose file is `/dev/full`, with what a first successful flush would have left.
    fn on_a_full_disk(dir: &Path) -> SegmentWriter<(u32, String)> {
        let mut writer = SegmentWriter::create(dir, "rows", 1 << 30).unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        writer.open = Some(BufWriter::with_capacity(BUFFER, full));
        writer
    }

    #[test]
    fn a_full_disk_is_named_with_its_remedy_and_what_waits_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = on_a_full_disk(dir.path());
        let mut refused = 0_u64;
        for n in 0..100 {
            refused += u64::from(writer.append(&(n, "x".repeat(1_000))).is_err());
        }
        // 64 KiB wait in memory; every record beyond is refused whole.
        assert!((30..40).contains(&refused), "{refused}");
        let error = writer.sync().unwrap_err();
        assert!(error.no_room());
        let said = error.to_string();
        assert!(
            said.contains("rows-") && said.contains("make room"),
            "{said}"
        );
        assert_eq!(writer.waiting(), 100 - refused);
    }

    #[test]
    fn what_follows_a_record_that_a_full_disk_broke_off_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = on_a_full_disk(dir.path());
        assert!(writer.append(&(0, "x".repeat(2 * BUFFER))).is_err());
        // There is room again.
        writer.append(&(1, "y".to_owned())).unwrap();
        writer.sync().unwrap();
        let (rows, _) = read_all::<(u32, String)>(dir.path(), "rows").unwrap();
        assert_eq!(rows, [(1, "y".to_owned())]);
        assert_eq!(writer.waiting(), 0);
    }

    fn written(count: u32) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let mut writer =
            SegmentWriter::<(u32, String)>::create(dir.path(), "rows", 1 << 20).unwrap();
        for n in 0..count {
            writer.append(&(n, "x".repeat(n as usize))).unwrap();
        }
        writer.sync().unwrap();
        let path = dir.path().join("rows-000000.seg");
        (dir, path)
    }

    #[test]
    fn what_is_written_is_read_back_over_several_segments() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let mut writer = SegmentWriter::<u64>::create(dir.path(), "rows", 64).unwrap();
            for n in 0..40 {
                writer.append(&n).unwrap();
            }
            writer.sync().unwrap();
        }
        let (rows, losses) = read_all::<u64>(dir.path(), "rows").unwrap();
        assert_eq!(rows, (0..40).chain(0..40).collect::<Vec<_>>());
        assert!(losses.is_empty());
        assert!(list(dir.path(), "rows").unwrap().len() > 2);
    }

    #[test]
    fn a_segment_that_grows_is_read_as_it_was_when_it_was_opened() {
        let (dir, path) = written(5);
        let sum = |rows: Records<(u32, String)>| rows.map(|(n, _)| n).sum::<u32>();
        let before = Records::open(dir.path(), "rows").unwrap();
        let whole = fs::read(&path).unwrap();
        // As a tap does that goes on, in the middle of a frame.
        let more = [&whole[..], &whole[MAGIC.len()..whole.len() - 1]].concat();
        fs::write(&path, more).unwrap();
        let mut again = before.again();
        assert_eq!((sum(before), again.by_ref().count()), (10, 5));
        assert!(again.losses().is_empty());
        let mut after = Records::<(u32, String)>::open(dir.path(), "rows").unwrap();
        assert_eq!(after.by_ref().map(|(n, _)| n).sum::<u32>(), 16);
        assert_eq!(after.losses().len(), 1);
    }

    #[test]
    fn a_segment_cut_anywhere_gives_the_whole_records_before_the_cut() {
        let (_dir, path) = written(12);
        let whole = fs::read(&path).unwrap();
        for cut in MAGIC.len()..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let (rows, losses) = read_all::<(u32, String)>(path.parent().unwrap(), "rows").unwrap();
            assert!(rows.iter().enumerate().all(|(n, row)| row.0 as usize == n));
            let clean = rows.len() < 12 && losses.is_empty();
            let said = losses.iter().any(|l| l.contains("torn frame"));
            assert!(clean || said, "cut at {cut}: {losses:?}");
        }
    }

    #[test]
    fn a_flipped_bit_is_found_and_named() {
        let (_dir, path) = written(12);
        let mut bytes = fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(&path, bytes).unwrap();
        let (rows, losses) = read_all::<(u32, String)>(path.parent().unwrap(), "rows").unwrap();
        assert_eq!(rows.len(), 11);
        assert!(
            losses[0].contains("rows-000000.seg") && losses[0].contains("checksum"),
            "{losses:?}"
        );
    }
}
