import { type EvmOptions, openEvm, type TestChain } from './evm.ts'
import { openSvm, type SvmOptions, type TestSvm } from './svm.ts'

/** A chain of this test file's own, stopped when the file is done: of the family of its network, LOCAL by default. */
export function openChain(options?: EvmOptions): Promise<TestChain>
export function openChain(options: SvmOptions): Promise<TestSvm>
export function openChain(options: EvmOptions | SvmOptions = {}): Promise<TestChain | TestSvm> {
  return isSvm(options) ? openSvm(options) : openEvm(options)
}

export function isSvm(options: EvmOptions | SvmOptions): options is SvmOptions {
  return options.network?.startsWith('SOLANA_') ?? false
}
