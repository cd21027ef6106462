/** Compiles the contracts in this folder. `node server/contracts/compile.ts` writes artifacts.json, which is committed. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import solc from 'solc'
import type { Artifact, Artifacts } from '../src/dev/local-chain.ts'
import { signaturesAddress } from '../src/dev/placement.ts'

type Compiled = { readonly abi: Artifact['abi']; readonly evm: Record<'bytecode' | 'deployedBytecode', Code> }
type Code = { readonly object: string }
type Output = {
  readonly errors?: readonly { readonly severity: string; readonly formattedMessage: string }[]
  readonly contracts: Readonly<Record<string, Readonly<Record<string, Compiled>>>>
}

const folder = new URL('./', import.meta.url)
const artifactsFile = new URL('artifacts.json', folder)

export const settings = {
  optimizer: { enabled: true, runs: 10_000 },
  evmVersion: 'cancun',
  libraries: { 'Token.sol': { TokenSignatures: signaturesAddress } },
  // No hash of the sources in the bytecode, so the same contract compiles to the same bytes on every machine.
  metadata: { bytecodeHash: 'none', appendCBOR: false },
  outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object', 'evm.deployedBytecode.object'] } },
}

/** What artifacts.json must contain, straight from the compiler. Compiler warnings are errors here. */
export function compileContracts(): Artifacts {
  const files = readdirSync(folder).filter((file) => file.endsWith('.sol'))
  const sources = Object.fromEntries(
    files.map((file) => [file, { content: readFileSync(new URL(file, folder), 'utf8') }]),
  )
  const output: Output = JSON.parse(
    solc.compile(JSON.stringify({ language: 'Solidity', sources, settings }), { import: readImport }),
  )
  const errors = output.errors ?? []
  if (errors.length > 0) throw new Error(errors.map(({ formattedMessage }) => formattedMessage).join('\n'))
  const artifacts: Record<string, Artifact> = {}
  for (const [name, { abi, evm }] of files.flatMap((file) => Object.entries(output.contracts[file] ?? {}))) {
    artifacts[name] = {
      abi,
      bytecode: `0x${evm.bytecode.object}`,
      deployedBytecode: `0x${evm.deployedBytecode.object}`,
    }
  }
  return artifacts
}

function readImport(path: string): { contents: string } | { error: string } {
  try {
    return { contents: readFileSync(fileURLToPath(import.meta.resolve(path)), 'utf8') }
  } catch (cause) {
    return { error: `${path}: ${cause}` }
  }
}

if (import.meta.main) {
  writeFileSync(artifactsFile, JSON.stringify(compileContracts()))
  execFileSync('npx', ['biome', 'format', '--write', fileURLToPath(artifactsFile)])
}
