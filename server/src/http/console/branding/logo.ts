/** What a store's setting can hold as a data URL, in bytes of the image. */
const logoBytesMax = 9_000

const kinds: readonly { readonly type: string; readonly isIt: (bytes: Buffer) => boolean }[] = [
  { type: 'image/png', isIt: (bytes) => bytes.subarray(0, 8).equals(Buffer.from('89504e470d0a1a0a', 'hex')) },
  { type: 'image/jpeg', isIt: (bytes) => bytes.subarray(0, 3).equals(Buffer.from('ffd8ff', 'hex')) },
  {
    type: 'image/webp',
    isIt: (bytes) => bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP',
  },
]

/** An uploaded image as a data URL, by what it is and not by what it is called; or what is wrong with it. */
export function readLogo(bytes: Buffer): { readonly url: string } | { readonly fault: 'large' | 'image' } {
  const kind = kinds.find(({ isIt }) => isIt(bytes))
  if (!kind) return { fault: 'image' }
  if (bytes.length > logoBytesMax) return { fault: 'large' }
  return { url: `data:${kind.type};base64,${bytes.toString('base64')}` }
}
