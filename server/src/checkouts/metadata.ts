import type { Mistake } from '../problems.ts'
import { checkText } from '../stores/check-text.ts'

/** Enough for ids and references of other systems. They are part of every event of the checkout. */
export const metadataKeysMax = 20
const metadataKeyBytesMax = 40
export const metadataValueCharactersMax = 500
/** UTF-8 takes up to four bytes for a character. */
const valueBytesMax = 4 * metadataValueCharactersMax

/** The store's own values. The schema has checked that there are few, all of them text, and none too long. */
export function checkMetadata(pointer: string, metadata: Readonly<Record<string, string>>): Mistake[] {
  return Object.entries(metadata).flatMap(([key, value]) => {
    const at = `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
    return [
      ...checkText(at, key, metadataKeyBytesMax).map((mistake) => ({
        ...mistake,
        detail: `The name: ${mistake.detail}`,
      })),
      ...(value === '' ? [] : checkText(at, value, valueBytesMax)),
    ]
  })
}
