import { type Address, type EncodedAccount, lamports } from '@solana/kit'

/**
 * A program that does nothing but end, well or not: it stands in for programs whose code is not to be had. It is the
 * smallest file that the loader runs: two instructions of sBPF in an ELF with one section of code.
 */
export function makeProgram(address: Address, succeeds = true): EncodedAccount {
  const data = makeElf(Buffer.from([0xb7, 0, 0, 0, succeeds ? 0 : 1, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0]))
  return {
    address,
    data,
    executable: true,
    lamports: lamports(10_000_000n),
    programAddress: 'BPFLoader2111111111111111111111111111111111' as Address,
    space: BigInt(data.length),
  }
}

const headBytes = 64
const sectionBytes = 64

function makeElf(code: Buffer): Uint8Array {
  const names = Buffer.from('\0.text\0.shstrtab\0')
  const codeAt = headBytes
  const namesAt = codeAt + code.length
  const sectionsAt = Math.ceil((namesAt + names.length) / 8) * 8
  const elf = Buffer.alloc(sectionsAt + 3 * sectionBytes)
  // 64 bits, little endian, version 1; a shared object (3) for BPF (247).
  elf.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1])
  elf.writeUInt16LE(3, 16)
  elf.writeUInt16LE(247, 18)
  elf.writeUInt32LE(1, 20)
  elf.writeBigUInt64LE(BigInt(codeAt), 24)
  elf.writeBigUInt64LE(BigInt(sectionsAt), 40)
  for (const [i, value] of [headBytes, 56, 0, sectionBytes, 3, 2].entries())
    elf.writeUInt16LE(value, 52 + 2 * i)
  code.copy(elf, codeAt)
  names.copy(elf, namesAt)
  // Section 0 is empty; then the code, which may be executed, and the names.
  const sections = [
    [1, 1, 6, codeAt, codeAt, code.length],
    [7, 3, 0, 0, namesAt, names.length],
  ] as const
  for (const [i, [name, type, flags, address, at, length]] of sections.entries()) {
    const section = sectionsAt + (i + 1) * sectionBytes
    elf.writeUInt32LE(name, section)
    elf.writeUInt32LE(type, section + 4)
    for (const [j, value] of [flags, address, at, length].entries())
      elf.writeBigUInt64LE(BigInt(value), section + 8 + 8 * j)
  }
  return new Uint8Array(elf)
}
