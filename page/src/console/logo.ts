/** Scales a chosen logo down in the browser, so that a photo of any size will do. */

/** Pixels of each side, the largest first. The payment page shows a logo at 40 by 40, on fine screens with thrice as many. */
const sides = [128, 96, 64, 48]
/** What the server takes: see `logoBytesMax` there. */
const bytesMax = 9_000
const types = ['image/png', 'image/webp', 'image/jpeg']

/** Replaces the file of the field. One that the browser cannot read stays: the server says what is wrong with it. */
export async function shrinkLogo(field: HTMLInputElement): Promise<void> {
  const file = field.files?.[0]
  if (!file || (file.size <= bytesMax && types.includes(file.type))) return
  const image = await createImageBitmap(file).catch(() => null)
  const small = image && (await encode(image))
  // Another file may have been chosen meanwhile.
  if (!small || field.files?.[0] !== file) return
  const transfer = new DataTransfer()
  transfer.items.add(new File([small], `logo.${small.type.split('/')[1]}`, { type: small.type }))
  field.files = transfer.files
}

/** The first that is small enough: as PNG, which keeps edges sharp, or else as WebP. */
async function encode(image: ImageBitmap): Promise<Blob | null> {
  for (const side of sides)
    for (const type of types) {
      const blob = await draw(image, side, type)
      // A browser that cannot write a type writes PNG instead.
      if (blob && blob.size <= bytesMax) return blob
    }
  return null
}

/** All of the image in the middle of a square, transparent around it; JPEG has no transparency, so white. */
function draw(image: ImageBitmap, side: number, type: string): Promise<Blob | null> {
  const canvas = document.createElement('canvas')
  canvas.width = side
  canvas.height = side
  const pen = canvas.getContext('2d')
  if (!pen) return Promise.resolve(null)
  if (type === 'image/jpeg') {
    pen.fillStyle = '#fff'
    pen.fillRect(0, 0, side, side)
  }
  const scale = Math.min(side / image.width, side / image.height, 1)
  const [width, height] = [image.width * scale, image.height * scale]
  pen.imageSmoothingQuality = 'high'
  pen.drawImage(image, (side - width) / 2, (side - height) / 2, width, height)
  return new Promise((resolve) => canvas.toBlob(resolve, type, 0.9))
}
