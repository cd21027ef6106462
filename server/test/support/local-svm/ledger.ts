import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  type Address,
  type Blockhash,
  type EncodedAccount,
  getBase58Decoder,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
  lamports,
  type MaybeEncodedAccount,
  type SignatureBytes,
  type Transaction,
} from '@solana/kit'
import { Clock, FailedTransactionMetadata, LiteSVM, type TransactionMetadata } from 'litesvm'
import { decodeDecimals, decodeTokenAccount } from './tokens.ts'

/**
 * Blocks on top of litesvm, which itself knows only the present state.
 *
 * Sent transactions wait in a pool and are executed when the next block is made. A block remembers the previous state
 * of each account that it wrote: the state at an older commitment is read from that, and a fork uses it to take blocks
 * back. Blockhashes live for 150 blocks, by height, and die with their block. Slots only rise, so a fork leaves a gap.
 */
export type Commitment = 'processed' | 'confirmed' | 'finalized'

type Message = Extract<
  ReturnType<ReturnType<typeof getCompiledTransactionMessageDecoder>['decode']>,
  { version: 0 | 'legacy' }
> & { readonly lifetimeToken: string }

export type Sent = {
  readonly signature: string
  readonly bytes: Uint8Array
  readonly transaction: Transaction
  readonly message: Message
}

export type TokenBalance = {
  readonly accountIndex: number
  readonly mint: Address
  readonly owner: Address
  readonly programId: Address
  readonly units: bigint
  readonly decimals: number
}

export type Run = {
  /** In the form of RPC answers; null is success. */
  readonly err: unknown
  readonly fee: bigint
  readonly meta: TransactionMetadata
}

type Balances = { readonly lamports: readonly bigint[]; readonly tokens: readonly TokenBalance[] }
export type Landed = Sent &
  Run & { readonly block: Block; readonly before: Balances; readonly after: Balances }

export type Block = {
  readonly slot: number
  readonly height: number
  readonly hash: Blockhash
  readonly time: number
  readonly landed: Landed[]
  /** The accounts that it wrote, as they were before it. */
  readonly written: Map<Address, MaybeEncodedAccount>
}

export type LedgerOptions = {
  /** Seconds since 1970. */
  readonly now: () => number
  /** Blocks on top until a block counts as confirmed, and as finalized. */
  readonly confirmedAfter: number
  readonly finalizedAfter: number
}

/** A blockhash may be used for this many blocks after its own. */
const blockhashAgeMax = 150
/** Old blocks are dropped, so that a chain can run for days: this is two hours of 400 ms slots. */
const blocksKept = 18_000

export type Ledger = ReturnType<typeof createLedger>

export function createLedger({ now, confirmedAfter, finalizedAfter }: LedgerOptions) {
  // Blockhashes and duplicates are checked here, because litesvm knows only the newest hash and cannot forget.
  const svm = new LiteSVM().withBlockhashCheck(false).withTransactionHistory(0n)
  const landed = new Map<string, Landed>()
  const pool = new Map<string, Sent>()
  let slot = Number.parseInt(`${svm.getClock().slot}`, 10)
  const blocks: Block[] = []
  const block = (): Block => ({
    slot,
    height: (blocks.at(-1)?.height ?? 0) + 1,
    hash: blockhash(`${slot} on ${blocks.at(-1)?.hash}`),
    time: Math.floor(now()),
    landed: [],
    written: new Map(),
  })
  blocks.push(block())
  let finalized = blocks[0] as Block

  const head = () => blocks.at(-1) as Block
  const at = (commitment: Commitment): Block => {
    if (commitment === 'finalized') return finalized
    const behind = commitment === 'confirmed' ? confirmedAfter : 0
    return blocks[Math.max(blocks.length - 1 - behind, blocks.indexOf(finalized))] as Block
  }

  /** The account as it was after that block. */
  const account = (address: Address, after: Block = head()): MaybeEncodedAccount => {
    const changed = blocks
      .slice(blocks.length - (head().height - after.height))
      .find(({ written }) => written.has(address))
    return changed?.written.get(address) ?? svm.getAccount(address)
  }

  const balances = (message: Message): Balances => ({
    lamports: message.staticAccounts.map((address) => svm.getBalance(address) ?? 0n),
    tokens: message.staticAccounts.flatMap((address, accountIndex) => {
      if (!isWritable(message, accountIndex)) return []
      const found = svm.getAccount(address)
      const token = decodeTokenAccount(found)
      if (!token || !found.exists) return []
      const decimals = decodeDecimals(svm.getAccount(token.mint)) ?? 0
      return [{ accountIndex, ...token, programId: found.programAddress, decimals }]
    }),
  })

  const isBlockhashValid = (hash: string, height: number, known: readonly Block[] = blocks) =>
    known
      .slice(-2 * blockhashAgeMax)
      .some((one) => one.hash === hash && one.height <= height && height - one.height <= blockhashAgeMax)

  const land = (sent: Sent, into: Block): void => {
    const { message } = sent
    if (landed.has(sent.signature) || !isBlockhashValid(message.lifetimeToken, into.height)) return
    for (const [index, address] of message.staticAccounts.entries())
      if (isWritable(message, index) && !into.written.has(address))
        into.written.set(address, svm.getAccount(address))
    const before = balances(message)
    const result = svm.sendTransaction(sent.transaction)
    const after = balances(message)
    const run = readRun(result)
    // Refused before it ran: no fee was paid, so it is in no block.
    if (run.err !== null && after.lamports[0] === before.lamports[0]) return
    const done = { ...sent, ...run, block: into, before, after }
    into.landed.push(done)
    landed.set(sent.signature, done)
  }

  return {
    blocks: blocks as readonly Block[],
    landed: landed as ReadonlyMap<string, Landed>,
    at,
    account,
    isBlockhashValid: (hash: string, after: Block) => isBlockhashValid(hash, after.height),
    lastValidHeight: ({ height }: Block) => height + blockhashAgeMax,
    /** Whether a node remembers the status of a block's transactions without searching its history. */
    isRecent: ({ height }: Block) => head().height - height <= 2 * blockhashAgeMax,
    programAccounts: (program: Address) => svm.getProgramAccounts(program),
    rent: (bytes: number) => svm.minimumBalanceForRentExemption(BigInt(bytes)),

    /** Runs it on the newest state without keeping any change. */
    simulate(
      { transaction }: Sent,
      verifySignatures: boolean,
    ): Run & { readonly accounts: EncodedAccount[] } {
      svm.withSigverify(verifySignatures)
      const result = svm.simulateTransaction(transaction)
      svm.withSigverify(true)
      if (result instanceof FailedTransactionMetadata) return { ...readRun(result), accounts: [] }
      return { ...readRun(result.meta()), accounts: result.postAccounts() }
    },

    enter(sent: Sent): void {
      pool.set(sent.signature, sent)
    },

    /** Makes the next block from the pool, in the order of sending. */
    mine(isHeld: boolean): void {
      slot += 1
      const next = block()
      svm.setClock(clockAt(svm.getClock(), next))
      if (!isHeld) {
        for (const sent of pool.values()) land(sent, next)
        pool.clear()
      }
      blocks.push(next)
      const final = blocks[blocks.length - 1 - finalizedAfter]
      if (final && final.height > finalized.height) finalized = final
      finalized.written.clear()
      if (blocks.length <= blocksKept + finalizedAfter) return
      for (const { signature } of blocks.shift()?.landed ?? []) landed.delete(signature)
    },

    /** Undoes the newest blocks: their transactions have to be sent again, and their blockhashes are unknown. */
    fork(depth: number): void {
      assert(depth <= head().height - finalized.height, 'Finalized blocks cannot be taken back.')
      for (const gone of blocks.splice(blocks.length - depth).reverse()) {
        for (const [address, was] of gone.written) svm.setAccount(was.exists ? was : emptyAccount(address))
        for (const { signature } of gone.landed) landed.delete(signature)
      }
    },

    plant: (planted: EncodedAccount) => svm.setAccount(planted),
  }
}

/** Decodes a transaction; null if the bytes are not one that this chain accepts. */
export function readTransaction(bytes: Uint8Array): Sent | null {
  try {
    const transaction = getTransactionDecoder().decode(bytes)
    const message = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes)
    if (message.version === 1 || ('addressTableLookups' in message && message.addressTableLookups?.length))
      return null
    // A missing signature is 64 zeros on the wire: invalid as a signature, but it can be looked up.
    const signatures = Object.entries(transaction.signatures).map(([signer, by]) => [signer, by ?? unsigned])
    const signature = getBase58Decoder().decode(signatures[0]?.[1] as SignatureBytes)
    const filled = { ...transaction, signatures: Object.fromEntries(signatures) }
    return { signature, bytes, transaction: filled, message: message as Message }
  } catch {
    return null
  }
}

function isWritable({ header, staticAccounts }: Message, index: number): boolean {
  const { numSignerAccounts, numReadonlySignerAccounts, numReadonlyNonSignerAccounts } = header
  return index < numSignerAccounts
    ? index < numSignerAccounts - numReadonlySignerAccounts
    : index < staticAccounts.length - numReadonlyNonSignerAccounts
}

const unsigned = new Uint8Array(64) as SignatureBytes

function readRun(result: TransactionMetadata | FailedTransactionMetadata): Run {
  const text = result.toString()
  const fee = BigInt(/ fee: (\d+) \}/.exec(text)?.[1] ?? 0)
  if (!(result instanceof FailedTransactionMetadata)) return { err: null, fee, meta: result }
  return { err: readError(/ err: (.*?), meta: /.exec(text)?.[1] ?? 'unknown'), fee, meta: result.meta() }
}

/** Converts errors from litesvm's Rust form to the JSON of RPC answers. */
function readError(text: string): unknown {
  const [, name = text, inside] = /^(\w+)(?:\((.*)\)| \{ (.*) \})?$/.exec(text) ?? []
  const [, index, error] = /^InstructionError\((\d+), (.*)\)$/.exec(text) ?? []
  if (index && error) return { InstructionError: [Number.parseInt(index, 10), readError(error)] }
  if (inside) return { [name]: /^\d+$/.test(inside) ? Number.parseInt(inside, 10) : inside }
  const [, field, value] = / \{ (\w+): (\d+) \}$/.exec(text) ?? []
  return field && value ? { [name]: { [field]: Number.parseInt(value, 10) } } : name
}

function blockhash(text: string): Blockhash {
  return getBase58Decoder().decode(createHash('sha256').update(text).digest()) as Blockhash
}

function clockAt({ epochStartTimestamp, epoch, leaderScheduleEpoch }: Clock, { slot, time }: Block): Clock {
  return new Clock(BigInt(slot), epochStartTimestamp, epoch, leaderScheduleEpoch, BigInt(time))
}

export function emptyAccount(address: Address): EncodedAccount {
  return {
    address,
    data: new Uint8Array(),
    executable: false,
    lamports: lamports(0n),
    programAddress: '11111111111111111111111111111111' as Address,
    space: 0n,
  }
}
