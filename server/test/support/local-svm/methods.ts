import { type Address, address, getBase58Encoder, type MaybeEncodedAccount } from '@solana/kit'
import { encodeBytes, readMemo, renderLanded } from './landed.ts'
import {
  type Block,
  type Commitment,
  type Landed,
  type Ledger,
  readTransaction,
  type Sent,
} from './ledger.ts'
import { decodeDecimals, decodeTokenAccount, tokenProgram, uiAmount } from './tokens.ts'

/** The JSON-RPC methods by name. Their answers have the same shape as those of public clusters. */
export type Method = (params: readonly unknown[]) => unknown

export class RpcError extends Error {
  readonly code: number
  readonly data: unknown
  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

type Settings = {
  readonly commitment?: Commitment
  readonly preflightCommitment?: Commitment
  readonly minContextSlot?: number
  readonly encoding?: string
  readonly skipPreflight?: boolean
  readonly sigVerify?: boolean
  readonly replaceRecentBlockhash?: boolean
  readonly searchTransactionHistory?: boolean
  readonly maxSupportedTransactionVersion?: number
  readonly transactionDetails?: string
  readonly accounts?: { readonly addresses: readonly string[]; readonly encoding?: string }
  readonly dataSlice?: { readonly offset: number; readonly length: number }
  readonly limit?: number
  readonly before?: string
  readonly until?: string
}

const signaturesMax = 1_000
const statusesMax = 256
const accountsMax = 100
const never = 18_446_744_073_709_551_615n

export function createMethods(
  ledger: Ledger,
  options: { readonly genesisHash: string; readonly send: (sent: Sent) => void },
): Readonly<Record<string, Method>> {
  const { at } = ledger

  const contextual = (block: Block, value: unknown) => ({
    context: { slot: block.slot, apiVersion: '3.0.0' },
    value,
  })
  /** The block at the caller's commitment. */
  const blockOf = (settings: Settings): Block => {
    const block = at(settings.commitment ?? 'finalized')
    if ((settings.minContextSlot ?? 0) > block.slot)
      throw new RpcError(-32016, 'Minimum context slot has not been reached', { contextSlot: block.slot })
    return block
  }
  const statusOf = ({ block }: Landed): Commitment => {
    if (block.height <= at('finalized').height) return 'finalized'
    return block.height <= at('confirmed').height ? 'confirmed' : 'processed'
  }
  const token = (found: MaybeEncodedAccount, block: Block) => {
    const read = decodeTokenAccount(found)
    const decimals = read && decodeDecimals(ledger.account(read.mint, block))
    return read && decimals !== null ? { ...read, decimals } : null
  }
  const account = (found: MaybeEncodedAccount, settings: Settings, block: Block) => {
    if (!found.exists) return null
    const { data, executable, lamports, programAddress, space } = found
    const rest = { executable, lamports, owner: programAddress, rentEpoch: never, space }
    const parsed = settings.encoding === 'jsonParsed' ? token(found, block) : null
    if (parsed) return { ...rest, data: parsedToken(parsed) }
    const { offset = 0, length = data.length } = settings.dataSlice ?? {}
    return { ...rest, data: encodeBytes(data.slice(offset, offset + length), settings.encoding ?? 'base64') }
  }

  const simulate = (sent: Sent, settings: Settings, block: Block) => {
    const hash = sent.message.lifetimeToken
    const failure = ledger.landed.has(sent.signature)
      ? 'AlreadyProcessed'
      : settings.replaceRecentBlockhash || ledger.isBlockhashValid(hash, block)
        ? null
        : 'BlockhashNotFound'
    if (failure) return { err: failure, logs: [], accounts: null, unitsConsumed: 0, returnData: null }
    const { err, meta, accounts } = ledger.simulate(sent, settings.sigVerify ?? false)
    const asked = settings.accounts?.addresses.map((wanted) => {
      const found = accounts.find((one) => one.address === wanted)
      const before = ledger.account(address(wanted))
      const after =
        found && err === null ? { ...found, data: new Uint8Array(found.data), exists: true as const } : before
      return account(after, { encoding: settings.accounts?.encoding ?? 'base64' }, block)
    })
    return {
      err,
      logs: meta.logs(),
      accounts: asked ?? null,
      unitsConsumed: meta.computeUnitsConsumed(),
      returnData: null,
      ...(settings.replaceRecentBlockhash && {
        replacementBlockhash: { blockhash: block.hash, lastValidBlockHeight: ledger.lastValidHeight(block) },
      }),
    }
  }

  const visible = (signature: string, settings: Settings): Landed | null => {
    const found = ledger.landed.get(signature)
    return found && found.block.height <= at(settings.commitment ?? 'finalized').height ? found : null
  }

  return {
    getHealth: () => 'ok',
    getVersion: () => ({ 'solana-core': '3.0.0', 'feature-set': 0 }),
    getGenesisHash: () => options.genesisHash,
    getSlot: ([settings]) => blockOf(read(settings)).slot,
    getBlockHeight: ([settings]) => blockOf(read(settings)).height,
    getEpochInfo([settings]) {
      const { slot, height } = blockOf(read(settings))
      return { absoluteSlot: slot, blockHeight: height, epoch: 0, slotIndex: slot, slotsInEpoch: 432_000 }
    },
    getRecentPrioritizationFees: () => [{ slot: at('processed').slot, prioritizationFee: 0 }],
    getMinimumBalanceForRentExemption: ([bytes]) => ledger.rent(bytes as number),

    getLatestBlockhash([settings]) {
      const block = blockOf(read(settings))
      return contextual(block, {
        blockhash: block.hash,
        lastValidBlockHeight: ledger.lastValidHeight(block),
      })
    },
    isBlockhashValid([hash, settings]) {
      const block = blockOf(read(settings))
      return contextual(block, ledger.isBlockhashValid(hash as string, block))
    },

    getBalance([owner, settings]) {
      const block = blockOf(read(settings))
      const found = ledger.account(readAddress(owner), block)
      return contextual(block, found.exists ? found.lamports : 0)
    },
    getAccountInfo([wanted, given]) {
      const settings = read(given)
      const block = blockOf(settings)
      return contextual(block, account(ledger.account(readAddress(wanted), block), settings, block))
    },
    getMultipleAccounts([wanted, given]) {
      const settings = read(given)
      const block = blockOf(settings)
      const list = wanted as readonly unknown[]
      if (list.length > accountsMax)
        throw new RpcError(-32602, `Too many inputs provided; max ${accountsMax}`)
      return contextual(
        block,
        list.map((one) => account(ledger.account(readAddress(one), block), settings, block)),
      )
    },
    getTokenAccountBalance([wanted, settings]) {
      const block = blockOf(read(settings))
      const found = token(ledger.account(readAddress(wanted), block), block)
      if (!found) throw new RpcError(-32602, 'Invalid param: could not find account')
      return contextual(block, uiAmount(found.units, found.decimals))
    },
    getTokenAccountsByOwner([owner, filter, given]) {
      const settings = read(given)
      const block = blockOf(settings)
      const { mint, programId = tokenProgram } = filter as { mint?: string; programId?: Address }
      const found = ledger.programAccounts(programId).flatMap((one) => {
        const then = ledger.account(one.address, block)
        const held = decodeTokenAccount(then)
        if (held?.owner !== owner || (mint && held?.mint !== mint)) return []
        return [{ pubkey: one.address, account: account(then, settings, block) }]
      })
      return contextual(block, found)
    },

    getSignatureStatuses([signatures, settings]) {
      const list = signatures as readonly string[]
      if (list.length > statusesMax)
        throw new RpcError(-32602, `Too many inputs provided; max ${statusesMax}`)
      const head = at('processed')
      const value = list.map((signature) => {
        const found = ledger.landed.get(signature)
        if (!found || !(ledger.isRecent(found.block) || read(settings).searchTransactionHistory)) return null
        const confirmationStatus = statusOf(found)
        const confirmations = confirmationStatus === 'finalized' ? null : head.height - found.block.height
        const { err } = found
        return {
          slot: found.block.slot,
          confirmations,
          err,
          status: err === null ? { Ok: null } : { Err: err },
          confirmationStatus,
        }
      })
      return contextual(head, value)
    },
    /** Newest first, up to the commitment. */
    getSignaturesForAddress([wanted, given]) {
      const settings = read(given)
      const { height } = blockOf(settings)
      const of = readAddress(wanted)
      const touching = ledger.blocks
        .filter((block) => block.height <= height)
        .flatMap(({ landed }) => landed)
        .filter(({ message }) => message.staticAccounts.includes(of))
        .reverse()
      const position = (signature: string) => touching.findIndex((one) => one.signature === signature)
      const start = settings.before === undefined ? 0 : position(settings.before) + 1
      const end = settings.until === undefined ? -1 : position(settings.until)
      if (settings.before !== undefined && start === 0) return []
      return touching
        .slice(start, end === -1 ? undefined : end)
        .slice(0, Math.min(settings.limit ?? signaturesMax, signaturesMax))
        .map((one) => ({
          signature: one.signature,
          slot: one.block.slot,
          err: one.err,
          memo: readMemo(one),
          blockTime: one.block.time,
          confirmationStatus: statusOf(one),
        }))
    },
    getTransaction([signature, given]) {
      const settings = read(typeof given === 'string' ? { encoding: given } : given)
      const found = visible(signature as string, settings)
      if (!found) return null
      return { slot: found.block.slot, blockTime: found.block.time, ...render(found, settings) }
    },
    getBlockTime([slot]) {
      return ledger.blocks.find((block) => block.slot === slot)?.time ?? null
    },
    getBlocks([start, end, settings]) {
      const last = blockOf(read(settings ?? (typeof end === 'object' ? end : undefined))).slot
      const to = typeof end === 'number' ? Math.min(end, last) : last
      return ledger.blocks.map(({ slot }) => slot).filter((slot) => slot >= (start as number) && slot <= to)
    },
    getBlock([slot, given]) {
      const settings = read(given)
      const index = ledger.blocks.findIndex((one) => one.slot === slot)
      const block = ledger.blocks[index]
      if (!block || block.height > blockOf(settings).height)
        throw new RpcError(
          -32007,
          `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`,
        )
      const parent = ledger.blocks[index - 1]
      const details = settings.transactionDetails ?? 'full'
      return {
        blockHeight: block.height,
        blockTime: block.time,
        blockhash: block.hash,
        parentSlot: parent?.slot ?? block.slot - 1,
        previousBlockhash: parent?.hash ?? options.genesisHash,
        rewards: [],
        ...(details === 'full' && { transactions: block.landed.map((one) => render(one, settings)) }),
        ...(details === 'signatures' && { signatures: block.landed.map(({ signature }) => signature) }),
      }
    },

    simulateTransaction([encoded, given]) {
      const settings = read(given)
      const block = blockOf(settings)
      return contextual(block, simulate(readSent(encoded, settings), settings, block))
    },
    sendTransaction([encoded, given]) {
      const settings = read(given)
      const sent = readSent(encoded, settings)
      const block = at(settings.preflightCommitment ?? 'finalized')
      if (!settings.skipPreflight) {
        const verified = simulate(sent, { sigVerify: true }, block)
        if (verified.err === 'SignatureFailure')
          throw new RpcError(-32003, 'Transaction signature verification failure')
        if (verified.err !== null)
          throw new RpcError(
            -32002,
            `Transaction simulation failed: ${JSON.stringify(verified.err)}`,
            verified,
          )
      }
      options.send(sent)
      return sent.signature
    },
  }
}

function read(settings: unknown): Settings {
  return (settings ?? {}) as Settings
}

function readAddress(text: unknown): Address {
  try {
    return address(text as string)
  } catch {
    throw new RpcError(-32602, 'Invalid param: WrongSize')
  }
}

function readSent(encoded: unknown, settings: Settings): Sent {
  const isBase64 = settings.encoding === 'base64'
  const bytes = isBase64
    ? Buffer.from(encoded as string, 'base64')
    : getBase58Encoder().encode(encoded as string)
  const sent = readTransaction(new Uint8Array(bytes))
  if (!sent) throw new RpcError(-32602, 'failed to deserialize transaction')
  return sent
}

function parsedToken({
  mint,
  owner,
  units,
  decimals,
}: {
  mint: string
  owner: string
  units: bigint
  decimals: number
}) {
  const info = { isNative: false, mint, owner, state: 'initialized', tokenAmount: uiAmount(units, decimals) }
  return { program: 'spl-token', parsed: { info, type: 'account' }, space: 165 }
}

function render(landed: Landed, settings: Settings) {
  if (landed.message.version === 0 && settings.maxSupportedTransactionVersion === undefined)
    throw new RpcError(
      -32015,
      'Transaction version (0) is not supported by the requesting client. Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": 0',
    )
  return renderLanded(landed, settings.encoding ?? 'json')
}
