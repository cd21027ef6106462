import { Refusal } from '../../../members/refusal.ts'

/** More fields than any form of ours has. */
const partsMax = 20

/** The fields of a form with a file: texts as they are, files as bytes. Of RFC 7578 it reads what browsers send. */
export function parseMultipart(type: string, body: Buffer): Readonly<Record<string, string | Buffer>> {
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(type) ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined) throw new Refusal('invalid')
  const mark = Buffer.from(`\r\n--${boundary}`)
  // The first boundary has no line before it.
  const text = Buffer.concat([Buffer.from('\r\n'), body])
  const fields = new Map<string, string | Buffer>()
  let from = text.indexOf(mark)
  while (from !== -1) {
    const start = from + mark.length
    const end = text.indexOf(mark, start)
    if (end === -1) break
    const [name, value] = parsePart(text.subarray(start, end))
    if (fields.has(name) || fields.size >= partsMax) throw new Refusal('invalid')
    fields.set(name, value)
    from = end
  }
  if (fields.size === 0) throw new Refusal('invalid')
  return Object.fromEntries(fields)
}

function parsePart(part: Buffer): [name: string, value: string | Buffer] {
  const split = part.indexOf('\r\n\r\n')
  const head = part.toString('utf8', 0, Math.max(split, 0))
  const [, name] = /^content-disposition: *form-data;(?:.*;)? *name="([A-Za-z]{1,40})"/im.exec(head) ?? []
  if (split === -1 || name === undefined) throw new Refusal('invalid')
  const value = part.subarray(split + 4)
  return [name, /; *filename\*?=/i.test(head) ? value : value.toString('utf8')]
}
