//! KV blocks with a prefix cache: a pool of a fixed size, reused in the order of last use.

use std::collections::{BTreeMap, HashMap};

/// A block's place in the pool.
pub(super) type BlockId = usize;

#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Sequences that use it now.
    users: u32,
    /// What it holds, if it is in the prefix cache.
    hash: Option<u64>,
    /// Its key in `free` while nobody uses it.
    freed: u64,
}

/// The pool. A block that nobody uses keeps its content until it is taken for another.
#[derive(Debug)]
pub(super) struct Pool {
    blocks: Vec<Block>,
    /// Blocks without users, the longest unused first.
    free: BTreeMap<u64, BlockId>,
    /// Blocks by content.
    cached: HashMap<u64, BlockId>,
    frees: u64,
    caches: bool,
}

impl Pool {
    /// A pool of `count` empty blocks.
    pub(super) fn new(count: u64, caches: bool) -> Self {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut pool = Self {
            blocks: vec![Block::default(); count],
            free: BTreeMap::new(),
            cached: HashMap::new(),
            frees: 0,
            caches,
        };
        (0..count).for_each(|block| pool.set_free(block));
        pool
    }

    pub(super) fn total(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Blocks without a user.
    pub(super) fn free(&self) -> u64 {
        self.free.len() as u64
    }

    /// The cached blocks with which `hashes` begins.
    pub(super) fn longest_prefix(&self, hashes: &[u64]) -> Vec<BlockId> {
        hashes
            .iter()
            .map_while(|hash| self.cached.get(hash).copied())
            .collect()
    }

    /// How many of `blocks` have no user: using them takes so many of the free ones.
    pub(super) fn unused(&self, blocks: &[BlockId]) -> u64 {
        let unused = blocks
            .iter()
            .filter(|block| self.blocks[**block].users == 0);
        unused.count() as u64
    }

    /// One more sequence uses this block.
    pub(super) fn share(&mut self, block: BlockId) {
        let it = &mut self.blocks[block];
        if it.users == 0 {
            self.free.remove(&it.freed);
        }
        it.users += 1;
    }

    /// Takes the longest unused block and forgets what it held.
    pub(super) fn take(&mut self) -> Option<BlockId> {
        let (_, block) = self.free.pop_first()?;
        let it = &mut self.blocks[block];
        it.users = 1;
        if let Some(hash) = it.hash.take() {
            self.cached.remove(&hash);
        }
        Some(block)
    }

    /// Says what a block holds, so that others find it. The first block with a content stays the one found.
    pub(super) fn name(&mut self, block: BlockId, hash: u64) {
        if self.caches && !self.cached.contains_key(&hash) && self.blocks[block].hash.is_none() {
            self.cached.insert(hash, block);
            self.blocks[block].hash = Some(hash);
        }
    }

    /// A sequence no longer uses these blocks. The last of them is reused first: beginnings are what
    /// prompts share.
    pub(super) fn release(&mut self, blocks: Vec<BlockId>) {
        for block in blocks.into_iter().rev() {
            let it = &mut self.blocks[block];
            it.users = it.users.saturating_sub(1);
            if it.users == 0 {
                self.set_free(block);
            }
        }
    }

    fn set_free(&mut self, block: BlockId) {
        self.frees += 1;
        self.blocks[block].freed = self.frees;
        self.free.insert(self.frees, block);
    }
}

#[cfg(test)]
mod tests {
    use super::Pool;

    #[test]
    fn the_longest_unused_block_is_reused_and_ends_go_before_beginnings() {
        let mut pool = Pool::new(3, true);
        let blocks: Vec<_> = (0..3).filter_map(|_| pool.take()).collect();
        for (block, hash) in blocks.iter().zip([10, 11, 12]) {
            pool.name(*block, hash);
        }
        assert!(pool.take().is_none());
        pool.release(blocks.clone());
        assert_eq!(pool.longest_prefix(&[10, 11, 12]), blocks);
        pool.take().unwrap();
        assert_eq!(pool.longest_prefix(&[10, 11, 12]), blocks[..2]);
        pool.share(blocks[0]);
        assert_eq!((pool.free(), pool.unused(&blocks[..2])), (1, 1));
        assert_eq!(pool.take(), Some(blocks[1]));
        assert_eq!(pool.longest_prefix(&[10]), [blocks[0]]);
    }
}
