//! Values as bytes: numbers with as many bytes as they need, texts once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Fault;

/// Where values are written. Each text is written where it first occurs and by its number from then on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    pub(super) bytes: Vec<u8>,
    texts: BTreeMap<Arc<str>, u32>,
}

impl Writer {
    /// A number in groups of seven bits, the lowest first; the high bit says that more follow.
    pub(super) fn number(&mut self, mut value: u128) {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                self.bytes.push(low & 0x7f);
                return;
            }
            self.bytes.push(low | 0x80);
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        if let Some(number) = self.texts.get(text) {
            return self.number(u128::from(*number).saturating_add(1));
        }
        let number = crate::names::next(self.texts.len());
        self.texts.insert(text.into(), number);
        self.number(0);
        self.count(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(super) fn count(&mut self, count: usize) {
        self.number(u128::try_from(count).unwrap_or(u128::MAX));
    }

    /// A number of items, each with what it is made of.
    fn all<'a, T: Put + 'a>(&mut self, items: impl ExactSizeIterator<Item = &'a T>) {
        self.count(items.len());
        items.for_each(|item| item.put(self));
    }
}

/// Where values are read: the bytes of one entry, and the texts that were seen so far.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(super) rest: &'a [u8],
    pub(super) texts: &'a mut Vec<Arc<str>>,
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8, Fault> {
        let (byte, rest) = self.rest.split_first().ok_or(Fault::Malformed)?;
        self.rest = rest;
        Ok(*byte)
    }

    pub(super) fn number(&mut self) -> Result<u128, Fault> {
        let mut value = 0_u128;
        for shift in (0..128_u32).step_by(7) {
            let byte = self.byte()?;
            value |= u128::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Fault::Malformed)
    }

    fn narrow<T: TryFrom<u128>>(&mut self) -> Result<T, Fault> {
        T::try_from(self.number()?).map_err(|_too_large| Fault::Malformed)
    }

    /// A number of items. Each takes a byte at least, so a count beyond what is left is a lie, and nothing is
    /// allocated for it.
    fn count(&mut self) -> Result<usize, Fault> {
        let count: usize = self.narrow()?;
        if count <= self.rest.len() { Ok(count) } else { Err(Fault::Malformed) }
    }

    pub(super) fn text(&mut self) -> Result<Arc<str>, Fault> {
        let number: usize = self.narrow()?;
        if let Some(number) = number.checked_sub(1) {
            return self.texts.get(number).map(Arc::clone).ok_or(Fault::Malformed);
        }
        let length = self.count()?;
        let bytes: &'a [u8] = self.rest;
        let (text, rest) = bytes.split_at_checked(length).ok_or(Fault::Malformed)?;
        self.rest = rest;
        let text: Arc<str> = std::str::from_utf8(text).map_err(|_no_text| Fault::Malformed)?.into();
        self.texts.push(Arc::clone(&text));
        Ok(text)
    }
}

/// What can be written.
pub(crate) trait Put {
    /// Writes it.
    fn put(&self, out: &mut Writer);
}

/// What can be read back.
pub(crate) trait Get: Sized {
    /// Reads it.
    fn get(input: &mut Reader<'_>) -> Result<Self, Fault>;
}

/// A struct is its fields in this order; a tuple struct has one field.
macro_rules! fields {
    ($($name:ident { $($field:ident),+ $(,)? })+) => { $(
        $crate::record::wire::put_fields!($name { $($field),+ });
        impl Get for $name {
            fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
                $( let $field = Get::get(input)?; )+
                Ok(Self { $($field),+ })
            }
        }
    )+ };
}

/// The same for what is never read back.
macro_rules! put_fields {
    ($($name:ident { $($field:ident),+ $(,)? })+) => { $(
        impl Put for $name {
            fn put(&self, out: &mut Writer) {
                let Self { $($field),+ } = self;
                $( $field.put(out); )+
            }
        }
    )+ };
}

/// An enum is the number of its variant and what that holds. Numbers are part of the format.
macro_rules! variants {
    ($($name:ident { $($number:literal = $variant:ident $(( $($held:ident),+ ))?),+ $(,)? })+) => { $(
        impl Put for $name {
            fn put(&self, out: &mut Writer) {
                match self {
                    $( Self::$variant $(( $($held),+ ))? => {
                        out.number($number);
                        $( $( $held.put(out); )+ )?
                    } )+
                }
            }
        }
        impl Get for $name {
            fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
                match input.number()? {
                    $( $number => {
                        $( $( let $held = Get::get(input)?; )+ )?
                        Ok(Self::$variant $(( $($held),+ ))?)
                    } )+
                    _ => Err(Fault::Malformed),
                }
            }
        }
    )+ };
}

pub(crate) use {fields, put_fields, variants};

macro_rules! unsigned {
    ($($name:ty),+) => { $(
        impl Put for $name {
            fn put(&self, out: &mut Writer) {
                out.number(u128::from(*self));
            }
        }
        impl Get for $name {
            fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
                input.narrow()
            }
        }
    )+ };
}
unsigned!(u32, u64, u128);

impl Put for usize {
    fn put(&self, out: &mut Writer) {
        out.count(*self);
    }
}

impl Put for bool {
    fn put(&self, out: &mut Writer) {
        out.number(u128::from(*self));
    }
}

impl Get for bool {
    fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
        match input.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Fault::Malformed),
        }
    }
}

/// Signed numbers have their sign in the lowest bit.
impl Put for i128 {
    fn put(&self, out: &mut Writer) {
        out.number(((self << 1) ^ (self >> 127)).cast_unsigned());
    }
}

impl Get for i128 {
    fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let value = input.number()?;
        let half = (value >> 1).cast_signed();
        Ok(if value & 1 == 0 { half } else { !half })
    }
}

impl Put for i64 {
    fn put(&self, out: &mut Writer) {
        i128::from(*self).put(out);
    }
}

impl Get for i64 {
    fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
        Self::try_from(i128::get(input)?).map_err(|_too_large| Fault::Malformed)
    }
}

impl Put for Arc<str> {
    fn put(&self, out: &mut Writer) {
        out.text(self);
    }
}

impl Get for Arc<str> {
    fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
        input.text()
    }
}

impl<T: Put> Put for Option<T> {
    fn put(&self, out: &mut Writer) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
}

impl<T: Get> Get for Option<T> {
    fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(if bool::get(input)? { Some(T::get(input)?) } else { None })
    }
}

impl<T: Put> Put for Box<T> {
    fn put(&self, out: &mut Writer) {
        (**self).put(out);
    }
}

impl<T: Put> Put for [T] {
    fn put(&self, out: &mut Writer) {
        out.all(self.iter());
    }
}

impl<T: Put> Put for Vec<T> {
    fn put(&self, out: &mut Writer) {
        out.all(self.iter());
    }
}

impl<T: Get> Get for Vec<T> {
    fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let count = input.count()?;
        // Grown item by item: what a hostile count could reserve is bounded by what the items really take.
        let mut items = Self::new();
        for _ in 0..count {
            items.push(T::get(input)?);
        }
        Ok(items)
    }
}

impl<T: Put> Put for Arc<[T]> {
    fn put(&self, out: &mut Writer) {
        out.all(self.iter());
    }
}

impl<T: Get> Get for Arc<[T]> {
    fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(Vec::get(input)?.into())
    }
}

/// A shared value is written as the value.
macro_rules! shared {
    ($($name:ty),+ $(,)?) => { $(
        impl Put for Arc<$name> {
            fn put(&self, out: &mut Writer) {
                (**self).put(out);
            }
        }
        impl Get for Arc<$name> {
            fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
                Ok(Self::new(<$name>::get(input)?))
            }
        }
    )+ };
}
pub(crate) use shared;

impl<K: Put, V: Put> Put for BTreeMap<K, V> {
    fn put(&self, out: &mut Writer) {
        out.count(self.len());
        for (key, value) in self {
            key.put(out);
            value.put(out);
        }
    }
}

impl<K: Get + Ord, V: Get> Get for BTreeMap<K, V> {
    fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let pairs: Vec<(K, V)> = Vec::get(input)?;
        Ok(pairs.into_iter().collect())
    }
}

impl<K: Put> Put for BTreeSet<K> {
    fn put(&self, out: &mut Writer) {
        out.all(self.iter());
    }
}

impl<K: Get + Ord> Get for BTreeSet<K> {
    fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(Vec::get(input)?.into_iter().collect())
    }
}

impl<A: Put, B: Put> Put for (A, B) {
    fn put(&self, out: &mut Writer) {
        self.0.put(out);
        self.1.put(out);
    }
}

impl<A: Get, B: Get> Get for (A, B) {
    fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok((A::get(input)?, B::get(input)?))
    }
}
