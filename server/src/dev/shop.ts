import type { Actor } from '@farthing/sdk'
import type { StoreId } from '../ids.ts'

/** A store that gets two months behind it, so that the console has something to show. */
export type Shop = {
  readonly storeId: StoreId
  /** Where payments go: CAIP-2 network, token and address. */
  readonly network: string
  readonly asset: string
  readonly payTo: string
  readonly actor: Actor
}
