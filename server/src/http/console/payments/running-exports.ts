import { Readable } from 'node:stream'
import type { MemberId, StoreId } from '../../../ids.ts'
import { Refusal } from '../../../members/refusal.ts'

/**
 * Per process: an export reads one page after another, so each keeps a connection to the database busy. By default
 * transactions have eight; half of them are left to screens.
 */
const runningMax = 4
/** So that one store's members do not take all of them. */
const runningPerStoreMax = 2
/** Far longer than the longest takes over a slow line. A browser that does not read on would keep its place for ever. */
const minutesMax = 10

type StartExport = (
  by: { readonly memberId: MemberId; readonly storeId: StoreId },
  rows: AsyncIterable<string>,
) => Readable

/** Exports of a process, one of each member at a time. A place is free once its stream is closed, for whatever reason. */
export function openExports(): StartExport {
  const running = new Map<MemberId, StoreId>()
  return ({ memberId, storeId }, rows) => {
    const ofStore = [...running.values()].filter((each) => each === storeId).length
    if (running.has(memberId) || running.size >= runningMax || ofStore >= runningPerStoreMax)
      throw new Refusal('exports_max')
    const stream = Readable.from(rows)
    const timer = setTimeout(() => stream.destroy(), minutesMax * 60_000).unref()
    running.set(memberId, storeId)
    return stream.once('close', () => {
      clearTimeout(timer)
      running.delete(memberId)
    })
  }
}
