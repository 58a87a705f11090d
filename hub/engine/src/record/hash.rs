//! FNV-1a in two widths: the same on every machine, for ever. It finds accidents, not forgers.

/// 64 bits: the checksum of a record's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    /// Takes in more bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// What it has come to, as it is written.
    pub(super) const fn bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }
}

/// 128 bits: stands for a whole plan.
pub(super) fn wide(bytes: &[u8]) -> u128 {
    const PRIME: u128 = (1 << 88) | 0x13b;
    let start = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    bytes.iter().fold(start, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_widths_are_fnv_1a() {
        let mut sum = Checksum::default();
        sum.add(b"foobar");
        assert_eq!(sum.bytes(), 0x8594_4171_f739_67e8_u64.to_le_bytes());
        assert_eq!(wide(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(wide(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
