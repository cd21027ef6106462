import { type EvmOptions, openEvm, type TestChain } from './evm.ts'
import { openSvm, type SvmOptions, type TestSvm } from './svm.ts'

/** A chain for this test file alone, of its network's family (LOCAL by default), stopped when the file is done. */
export function openChain(options?: EvmOptions): Promise<TestChain>
export function openChain(options: SvmOptions): Promise<TestSvm>
export function openChain(options: EvmOptions | SvmOptions = {}): Promise<TestChain | TestSvm> {
  return isSvm(options) ? openSvm(options) : openEvm(options)
}

export function isSvm(options: EvmOptions | SvmOptions): options is SvmOptions {
  return options.network?.startsWith('SOLANA_') ?? false
}
