import type { Language } from './language.ts'

export const spanish: Language = {
  tag: 'es',
  direction: 'ltr',
  name: 'Español',
  texts: {
    languages: 'Idiomas',
    signOut: 'Cerrar sesión',
    time: '{time} UTC',
    browserOn: '{browser} en {system}',
    someBrowser: 'Un navegador',

    signIn: {
      title: 'Iniciar sesión',
      heading: 'Iniciar sesión en Farthing',
      about:
        'Use la llave de acceso que creó al recibir la invitación: su huella, su rostro, su PIN o su llave de seguridad.',
      button: 'Entrar con una llave de acceso',
      through: 'Entrar a través de {host}',
      needsScript: 'Las llaves de acceso necesitan JavaScript. Permítalo para este sitio.',
      lost: '¿No tiene llave de acceso o la ha perdido? Pida un enlace nuevo a un propietario de su tienda.',
    },

    enrol: {
      title: 'Su invitación',
      hasPasskey: 'Si ya tiene una llave de acceso, {signIn}.',
      signIn: 'inicie sesión',
      join: 'Unirse a {store}',
      invited: 'La invitación es para {name}, con la función {role}.',
      noPassword:
        'No necesita contraseña. Este dispositivo crea una llave de acceso, que se desbloquea con su huella, su rostro o su PIN cada vez que inicia sesión.',
      recover: 'Una llave de acceso nueva para {store}',
      recoverAbout:
        'Este enlace es para {name}. Crea una llave de acceso en este dispositivo. Todas sus llaves anteriores dejan de funcionar y se cierran sus demás sesiones.',
      button: 'Crear una llave de acceso',
      joinAs: 'Unirse como {name}, con la llave de acceso que ya tiene',
      needsScript:
        'Las llaves de acceso necesitan JavaScript. Permítalo para este sitio y vuelva a abrir el enlace.',
    },

    account: {
      title: 'Su cuenta',
      stores: 'Tiendas',
      youAre: {
        owner: 'Su función: propietario',
        manager: 'Su función: gerente',
        developer: 'Su función: desarrollador',
        viewer: 'Su función: lector',
      },
      members: 'Miembros',
      passkeys: 'Llaves de acceso',
      made: 'Creada el {made}',
      madeAndUsed: 'Creada el {made}, usada por última vez el {used}',
      remove: 'Quitar',
      passkeyName: 'Nombre de otra llave de acceso',
      passkeyExample: 'Llave de seguridad',
      addPasskey: 'Añadir una llave de acceso',
      provider: 'Acceso de la empresa',
      connected: 'Con su cuenta de allí puede iniciar sesión aquí.',
      notConnected: 'No conectada. Los cambios se siguen confirmando con su llave de acceso.',
      connect: 'Conectar',
      disconnect: 'Desconectar',
      sessions: 'Sesiones abiertas',
      here: '(esta)',
      session: 'Desde {address}, abierta el {since}, vista por última vez el {seen}',
      end: 'Cerrar',
    },

    team: {
      title: 'Miembros de {store}',
      you: '(usted)',
      since: 'desde el {time}',
      roleOf: 'Función de {name}',
      changeRole: 'Cambiar función',
      lostPasskey: 'Perdió su llave',
      remove: 'Quitar',
      open: 'Invitaciones abiertas',
      newPasskey: 'llave de acceso nueva',
      until: 'hasta el {time}',
      withdraw: 'Retirar',
      invite: 'Invitar a alguien',
      name: 'Nombre',
      email: 'Correo electrónico, si quiere anotarlo',
      emailMailed: 'Correo electrónico, si quiere que el enlace se envíe también allí',
      role: 'Función',
      makeLink: 'Crear un enlace',
      back: 'Volver a su cuenta',
      roles: { owner: 'propietario', manager: 'gerente', developer: 'desarrollador', viewer: 'lector' },
      describeRole: {
        owner: 'Propietario: todo',
        manager: 'Gerente: decide sobre pagos, devoluciones hasta un límite',
        developer: 'Desarrollador: claves y webhooks',
        viewer: 'Lector: ve pagos e informes',
      },
    },

    link: {
      title: 'Envíe este enlace',
      heading: 'Envíe este enlace a {name}',
      join: 'Con él, esa persona crea una llave de acceso y se une a la tienda.',
      recover:
        'Con él, esa persona crea una llave de acceso nueva. Las anteriores dejan entonces de funcionar.',
      about:
        'Funciona una sola vez, hasta el {time}, y solo se muestra ahora. Quien lo tenga puede usarlo: no lo envíe a nadie más.',
      mailed: 'También va de camino a {email}.',
      copy: 'Copiar el enlace',
      copied: 'Copiado',
      back: 'Volver a los miembros',
    },

    failed: { title: 'No ha funcionado', back: 'Volver a la consola' },
    refusals: {
      signed_out: 'La sesión está cerrada. Inicie sesión para continuar.',
      invitation: 'Este enlace no funciona: ya se usó, caducó o fue sustituido. Pida uno nuevo.',
      passkey: 'No se ha aceptado esta llave de acceso. Inténtelo de nuevo o use otra.',
      identity:
        'Nadie aquí está conectado con esa cuenta. Inicie sesión con su llave de acceso y conéctela en la página de su cuenta.',
      identity_taken: 'Esa cuenta ya está conectada con un miembro.',
      provider:
        'No se ha aceptado la respuesta del proveedor de identidad. Inténtelo de nuevo o entre con su llave de acceso.',
      challenge: 'Ha tardado demasiado o ya se había respondido. Inténtelo de nuevo.',
      confirmation: 'Confírmelo con su llave de acceso.',
      last_passkey: 'Es su única llave de acceso. Añada otra antes de quitarla.',
      passkeys_max: 'Ya tiene todas las llaves de acceso que puede tener un miembro. Quite una antes.',
      last_owner: 'La tienda se quedaría sin propietario. Nombre antes a otro.',
      role: 'Su función en esta tienda no incluye eso. Pregunte a un propietario.',
      has_owner: 'La tienda tiene un propietario, que invita a la gente en la consola.',
      has_members: 'La tienda tiene miembros. Su propietario invita a la gente en la consola.',
      other_stores:
        'Este miembro pertenece también a una tienda que no es suya, así que no puede sustituir sus llaves de acceso. Quítelo aquí e invítelo de nuevo.',
      operator:
        'Este miembro administra la instalación, así que no puede sustituir sus llaves de acceso. Pregunte a quien la administra con él.',
      is_member: 'Ya es miembro de esta tienda.',
      members_max: 'La tienda ya tiene todos los miembros e invitaciones abiertas que puede tener.',
      not_found: 'Aquí no hay nada, o no es suyo.',
      invalid: 'Algo de lo que ha escrito no se puede usar.',
    },
    mistakes: {
      length: 'debe tener de 1 a 100 bytes.',
      characters: 'no puede contener caracteres de control ni caracteres que cambian el sentido del texto.',
      email: 'debe ser una dirección de correo, como ayuda@tienda.example.',
    },
    problems: {
      cross_site:
        'Esto no se envió desde la consola, la página es demasiado antigua o el navegador no guarda cookies. Vuelva a cargar la página.',
      rate_limited: 'Demasiados intentos desde su dirección. Espere un minuto.',
      unavailable: 'No se puede acceder a la consola en este momento. Inténtelo de nuevo enseguida.',
      internal: 'Algo ha fallado aquí. Inténtelo de nuevo enseguida.',
    },
    script: {
      unsupported: 'Este navegador no admite llaves de acceso. Actualícelo o use otro.',
      unused: 'No se usó la llave de acceso: canceló o tardó demasiado. Inténtelo de nuevo.',
      known: 'Este dispositivo ya tiene una llave de acceso suya.',
      failed: 'No ha funcionado. Compruebe su conexión e inténtelo de nuevo.',
    },
  },
}
