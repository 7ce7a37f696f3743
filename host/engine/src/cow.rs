//! Vectors whose copies are cheap: a snapshot shares every part that has not
//! changed since.

use std::sync::Arc;

const CHUNK: usize = 64;

/// A chunk's number and what stands in it: something, or the chunk is not kept.
type Chunk<T> = (usize, Arc<Vec<Option<Arc<T>>>>);

/// A growing vector of optional things under ascending numbers. A clone costs
/// one pointer; the first change after it copies the list of chunks and one
/// chunk of 64 pointers, so writers pay for what they touch. Numbers under which
/// nothing stands any more cost nothing once their whole chunk is empty.
#[derive(Debug)]
pub struct Cow<T> {
    /// Ascending by number.
    chunks: Arc<Vec<Chunk<T>>>,
    len: usize,
}

impl<T> Clone for Cow<T> {
    fn clone(&self) -> Self {
        Self { chunks: self.chunks.clone(), len: self.len }
    }
}

impl<T> Default for Cow<T> {
    fn default() -> Self {
        Self { chunks: Arc::default(), len: 0 }
    }
}

impl<T: Clone> Cow<T> {
    /// Nothing, under numbers of which `len` were used.
    pub fn with_len(len: usize) -> Self {
        Self { len, ..Self::default() }
    }

    /// One more than the greatest number ever used.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was ever put in.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the chunk of a number is, or where it would be.
    fn find(&self, chunk: usize) -> Result<usize, usize> {
        // As long as nothing before it was dropped, a chunk is at its number.
        match self.chunks.get(chunk) {
            Some((number, _)) if *number == chunk => Ok(chunk),
            _ => self.chunks.binary_search_by_key(&chunk, |(number, _)| *number),
        }
    }

    /// What stands under a number.
    pub fn get(&self, at: usize) -> Option<&Arc<T>> {
        let found = self.find(at / CHUNK).ok()?;
        self.chunks[found].1[at % CHUNK].as_ref()
    }

    /// The same, to change it; copied first if a snapshot shares it.
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.get(at)?;
        let found = self.find(at / CHUNK).ok()?;
        let (_, chunk) = Arc::make_mut(&mut self.chunks).get_mut(found)?;
        Arc::make_mut(chunk)[at % CHUNK].as_mut().map(Arc::make_mut)
    }

    /// Puts something under a number, with gaps before it if need be.
    pub fn set(&mut self, at: usize, value: Option<Arc<T>>) {
        self.len = self.len.max(at + 1);
        let found = match (self.find(at / CHUNK), &value) {
            (Ok(found), _) => found,
            (Err(_), None) => return,
            (Err(found), Some(_)) => {
                let chunk = (at / CHUNK, Arc::new(vec![None; CHUNK]));
                Arc::make_mut(&mut self.chunks).insert(found, chunk);
                found
            }
        };
        let gone = value.is_none();
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(&mut chunks[found].1);
        chunk[at % CHUNK] = value;
        if gone && chunk.iter().all(Option::is_none) {
            chunks.remove(found);
        }
    }

    /// All that is there, with its number, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Arc<T>)> {
        self.chunks.iter().flat_map(|(c, chunk)| {
            chunk
                .iter()
                .enumerate()
                .filter_map(move |(i, v)| v.as_ref().map(|v| (c * CHUNK + i, v)))
        })
    }
}

/// The numbers of what changed, in order, of which the oldest are forgotten.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    full: Arc<Vec<Arc<Vec<u32>>>>,
    open: Arc<Vec<u32>>,
    /// Position of the first one still known.
    start: u64,
}

const LOG_CHUNK: usize = 1024;
const LOG_CHUNKS: usize = 64;

impl Changes {
    /// None, after as many as `end` that are forgotten.
    pub fn starting_at(end: u64) -> Self {
        Self { start: end, ..Self::default() }
    }

    /// Appends one.
    pub fn push(&mut self, what: u32) {
        let open = Arc::make_mut(&mut self.open);
        open.push(what);
        if open.len() == LOG_CHUNK {
            let full = Arc::make_mut(&mut self.full);
            full.push(std::mem::take(&mut self.open));
            if full.len() > LOG_CHUNKS {
                full.remove(0);
                self.start += LOG_CHUNK as u64;
            }
        }
    }

    /// Position after the last one.
    pub fn end(&self) -> u64 {
        self.start + (self.full.len() * LOG_CHUNK + self.open.len()) as u64
    }

    /// All from a position on; `None` if some of them were forgotten or the
    /// position is not of this log.
    pub fn since(&self, from: u64) -> Option<impl Iterator<Item = u32> + '_> {
        if from < self.start || from > self.end() {
            return None;
        }
        let skip = (from - self.start) as usize;
        let chunks = self.full.iter().map(|c| c.as_slice()).chain([self.open.as_slice()]);
        Some(chunks.skip(skip / LOG_CHUNK).flatten().copied().skip(skip % LOG_CHUNK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_does_not_see_later_changes() {
        let mut a = Cow::default();
        a.set(70, Some(Arc::new(1)));
        let b = a.clone();
        *a.get_mut(70).unwrap() = 2;
        a.set(3, Some(Arc::new(9)));
        assert_eq!((b.get(70).map(|v| **v), b.get(3)), (Some(1), None));
        assert_eq!(a.iter().map(|(i, v)| (i, **v)).collect::<Vec<_>>(), [(3, 9), (70, 2)]);
        assert_eq!((a.len(), a.get(500)), (71, None));
    }

    #[test]
    fn what_is_gone_costs_nothing_and_its_number_is_not_given_again() {
        let mut a = Cow::default();
        for at in 0..1000 {
            a.set(at, Some(Arc::new(at)));
        }
        let b = a.clone();
        for at in (0..1000).filter(|at| *at != 500) {
            a.set(at, None);
        }
        assert_eq!((a.chunks.len(), a.len(), b.iter().count()), (1, 1000, 1000));
        a.set(1000, Some(Arc::new(7)));
        a.set(3, Some(Arc::new(9)));
        *a.get_mut(500).unwrap() += 1;
        a.set(2000, None);
        assert_eq!(
            a.iter().map(|(i, v)| (i, **v)).collect::<Vec<_>>(),
            [(3, 9), (500, 501), (1000, 7)]
        );
        assert_eq!((a.chunks.len(), a.len(), a.get(64), a.get(5000)), (3, 2001, None, None));
    }

    #[test]
    fn the_log_gives_what_came_since_or_says_that_it_forgot() {
        let mut log = Changes::default();
        for n in 0..100_000 {
            log.push(n);
        }
        assert_eq!(log.end(), 100_000);
        let tail: Vec<_> = log.since(98_000).unwrap().collect();
        assert_eq!(tail, (98_000..100_000).collect::<Vec<_>>());
        assert!(log.since(10).is_none());
        assert!(log.since(100_001).is_none());
        assert_eq!(log.since(100_000).unwrap().count(), 0);
    }
}
