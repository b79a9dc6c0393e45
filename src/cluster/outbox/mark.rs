//! What a checkpoint keeps of an outbox, and how it is restored. The format is at the head of
//! `outbox`.
//!
//! Law: the line is restored in its order; batches that were open join it as sealed ones, the held
//! ones last.

use super::Outbox;
use super::collect::{Batch, Which};
use super::waiting::Spilled;
use crate::cluster::Partition;
use crate::cluster::queue::PublicationId;
use crate::ground::codec::{Put, Take};
use crate::ground::frame::Flaw;
use crate::ground::segments::Location;
use std::ops::RangeInclusive;

/// The places that the first record of a batch may have.
type Places = RangeInclusive<u64>;

/// Appends the state of the outbox.
pub(super) fn put(outbox: &Outbox, out: &mut Vec<u8>) {
    out.put_varint(outbox.place);
    let under_way = outbox.under_way.all();
    out.put_varint(under_way.len() as u64);
    for (id, batches) in under_way {
        out.put_u64(id.process);
        out.put_varint(id.number);
        out.put_varint(batches.len() as u64);
        batches.iter().for_each(|batch| put_sealed(batch, out));
    }
    let waiting = outbox.waiting.in_memory();
    out.put_varint(waiting.len() as u64);
    waiting.for_each(|batch| put_sealed(batch, out));
    for which in [Which::Plain, Which::Held] {
        out.put_varint(outbox.collector.all(which).count() as u64);
        for (partition, first, after, records, payload) in outbox.collector.all(which) {
            put_batch(partition, [first, after, records.into()], out);
            out.put_bytes(payload);
        }
    }
    let spilled = outbox.waiting.on_disk();
    out.put_varint(spilled.len() as u64);
    for Spilled { location, partition, first, after, records } in spilled {
        let Location { segment, offset, bytes } = *location;
        [segment, offset, bytes].iter().for_each(|number| out.put_varint((*number).into()));
        put_batch(*partition, [*first, *after, (*records).into()], out);
    }
}

fn put_sealed(batch: &Batch, out: &mut Vec<u8>) {
    let Batch { partition, first, after, records, payload } = batch;
    put_batch(*partition, [*first, *after, (*records).into()], out);
    out.put_bytes(payload);
}

fn put_batch(partition: Partition, numbers: [u64; 3], out: &mut Vec<u8>) {
    out.put_varint(partition.number().into());
    numbers.iter().for_each(|number| out.put_varint(*number));
}

/// Restores a new outbox from what [`put`] wrote.
///
/// # Errors
/// The bytes are invalid, or name a batch in a file that isn't restored.
pub(super) fn restore(outbox: &mut Outbox, bytes: &[u8]) -> Result<(), Flaw> {
    let mut take = Take::new(bytes);
    outbox.place = take_count(&mut take)?;
    for _ in 0..take.varint()? {
        let id = PublicationId { process: take.u64()?, number: take.varint()? };
        let batches = take_batches(1..=outbox.place, &mut take)?;
        batches.iter().for_each(|batch| outbox.enlist(batch));
        if !outbox.under_way.restore(id, batches) {
            return Err(Flaw::Senseless);
        }
    }
    let sealed = take_batches(1..=outbox.place, &mut take)?;
    let open = take_batches(1..=outbox.place, &mut take)?;
    let held = take_batches(0..=0, &mut take)?;
    if held.iter().any(|batch| batch.after > outbox.place) {
        return Err(Flaw::Senseless);
    }
    sealed.into_iter().for_each(|batch| outbox.line_up(batch));
    for _ in 0..take.varint()? {
        let batch = take_spilled(1..=outbox.place, &mut take)?;
        if !outbox.waiting.segments.retain(batch.location) {
            return Err(Flaw::Senseless);
        }
        outbox.unpublished.insert(batch.first);
        outbox.partitions[batch.partition.index()] += 1;
        outbox.waiting.push_spilled(batch);
    }
    open.into_iter().for_each(|batch| outbox.line_up(batch));
    for mut batch in held {
        batch.first = outbox.place + 1;
        outbox.place += u64::from(batch.records);
        outbox.line_up(batch);
    }
    if take.is_empty() { Ok(()) } else { Err(Flaw::Senseless) }
}

/// Decodes a number that still has as many above it.
fn take_count(take: &mut Take<'_>) -> Result<u64, Flaw> {
    take.varint().ok().filter(|number| *number <= u64::MAX / 2).ok_or(Flaw::Senseless)
}

/// Decodes batches whose first places are within `places`.
fn take_batches(places: Places, take: &mut Take<'_>) -> Result<Vec<Batch>, Flaw> {
    let count = take.varint()?;
    let batch = |_| {
        let (partition, [first, after], records) = take_head(&places, take)?;
        Ok(Batch { partition, first, after, records, payload: take.bytes()?.into() })
    };
    (0..count).map(batch).collect()
}

fn take_spilled(places: Places, take: &mut Take<'_>) -> Result<Spilled, Flaw> {
    let (segment, offset, bytes) = (take.number()?, take.number()?, take.number()?);
    let location = Location { segment, offset, bytes };
    let (partition, [first, after], records) = take_head(&places, take)?;
    Ok(Spilled { location, partition, first, after, records })
}

/// Decodes what a batch has besides its payload. A batch that has places waits for an earlier one.
fn take_head(places: &Places, take: &mut Take<'_>) -> Result<(Partition, [u64; 2], u32), Flaw> {
    let partition = Partition::new(take.number()?).ok_or(Flaw::Senseless)?;
    let (first, after) = (take.varint()?, take.varint()?);
    if !places.contains(&first) || (first > 0 && after >= first) {
        return Err(Flaw::Senseless);
    }
    Ok((partition, [first, after], take.number()?))
}
