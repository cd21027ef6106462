import { getBase58Decoder, type ReadonlyUint8Array } from '@solana/kit'
import type { Landed, TokenBalance } from './ledger.ts'
import { uiAmount } from './tokens.ts'

/** A transaction in a block and its effects, in the form of RPC answers. */
export function renderLanded(landed: Landed, encoding: string) {
  const { err, fee, meta, before, after, bytes, message } = landed
  return {
    version: message.version,
    transaction: encoding === 'json' ? renderJson(landed) : encodeBytes(bytes, encoding),
    meta: {
      err,
      status: err === null ? { Ok: null } : { Err: err },
      fee,
      preBalances: before.lamports,
      postBalances: after.lamports,
      preTokenBalances: before.tokens.map(renderTokenBalance),
      postTokenBalances: after.tokens.map(renderTokenBalance),
      innerInstructions: renderInner(landed),
      logMessages: meta.logs(),
      computeUnitsConsumed: meta.computeUnitsConsumed(),
      loadedAddresses: { readonly: [], writable: [] },
      rewards: [],
    },
  }
}

export function encodeBytes(bytes: Uint8Array, encoding: string): [string, string] {
  if (encoding === 'base58') return [base58(bytes), encoding]
  return [Buffer.from(bytes).toString('base64'), 'base64']
}

/** A transaction's memos, each preceded by its length, as in a list of signatures. */
export function readMemo({ message }: Landed): string | null {
  const memos = message.instructions
    .filter(({ programAddressIndex }) => message.staticAccounts[programAddressIndex]?.startsWith('Memo'))
    .map(({ data }) => `[${data?.length ?? 0}] ${Buffer.from(data ?? []).toString()}`)
  return memos.length > 0 ? memos.join('; ') : null
}

function renderJson({ transaction, message }: Landed) {
  const { numSignerAccounts, numReadonlySignerAccounts, numReadonlyNonSignerAccounts } = message.header
  return {
    signatures: Object.values(transaction.signatures).map((signature) =>
      base58(signature ?? new Uint8Array(64)),
    ),
    message: {
      header: {
        numRequiredSignatures: numSignerAccounts,
        numReadonlySignedAccounts: numReadonlySignerAccounts,
        numReadonlyUnsignedAccounts: numReadonlyNonSignerAccounts,
      },
      accountKeys: message.staticAccounts,
      recentBlockhash: message.lifetimeToken,
      instructions: message.instructions.map(({ programAddressIndex, accountIndices, data }) => ({
        programIdIndex: programAddressIndex,
        accounts: accountIndices ?? [],
        data: base58(data ?? new Uint8Array()),
        stackHeight: 1,
      })),
      ...(message.version === 0 && { addressTableLookups: [] }),
    },
  }
}

function renderInner({ meta }: Landed) {
  return meta
    .innerInstructions()
    .map((instructions, index) => ({
      index,
      instructions: instructions.map((inner) => ({
        programIdIndex: inner.instruction().programIdIndex(),
        accounts: [...inner.instruction().accounts()],
        data: base58(inner.instruction().data()),
        stackHeight: inner.stackHeight(),
      })),
    }))
    .filter(({ instructions }) => instructions.length > 0)
}

function renderTokenBalance({ units, decimals, ...rest }: TokenBalance) {
  return { ...rest, uiTokenAmount: uiAmount(units, decimals) }
}

function base58(bytes: ReadonlyUint8Array): string {
  return getBase58Decoder().decode(bytes)
}
