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
      signUp: 'Abra una tienda aquí',
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
      session: 'Abierta desde {address} el {since}, vista por última vez el {seen}',
      usedFrom: 'Usada también con {browser} desde {address}, el {time}',
      end: 'Cerrar',
      mails: 'Correos sobre {store}',
      alerts: {
        money: 'Cuando llega dinero que no completa ningún cobro',
        webhooks: 'Cuando los webhooks no llegan',
      },
      saveMails: 'Guardar',
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
      roles: { owner: 'propietario', manager: 'gerente', developer: 'desarrollador', viewer: 'lector' },
      describeRole: {
        owner: 'Propietario: todo',
        manager: 'Gerente: decide sobre pagos, reembolsos hasta un límite',
        developer: 'Desarrollador: claves y webhooks',
        viewer: 'Lector: ve pagos e informes',
      },
    },

    wallets: {
      title: 'Carteras de {store}',
      waiting: 'A la espera de un propietario',
      unclaimed: 'En espera de una firma',
      unclaimedAbout: 'No se paga nada a ella hasta que su titular {proven}.',
      unclaimedProven: 'demuestre que es suya',
      unclaimedCustodial: 'No se paga nada a ella hasta que quien administra esta instalación la reclame.',
      inUse: 'En uso',
      none: 'Sin cartera: los pagos nuevos no se pueden recibir aquí.',
      elsewhere: 'La tiene otra celda de esta instalación: los pagos nuevos no se pueden recibir aquí.',
      proven: 'Demostrada con una firma el {time}',
      unproven: 'Sin demostrar con una firma',
      askUse: 'Cobrar en {network} en {address}',
      askRetire: 'Dejar de usar en {network} {address}',
      askedBy: 'Lo pidió {who} el {time}.',
      askedByUntil: 'Lo pidió {who} el {time}; espera hasta el {until}.',
      compare:
        'Compare cada carácter con la dirección de su propia cartera. Allí no se paga nada hasta que lo confirme un propietario.',
      staysInUse: 'Sigue en uso hasta que lo confirme un propietario.',
      confirm: 'Confirmar',
      refuse: 'Rechazar',
      recent: 'Cambios de las últimas 24 horas',
      recentAbout:
        'Si no ha sido usted, vuelva a la cartera anterior. Con ello se deshacen también los cambios posteriores de la misma red. Si se cambió varias veces, pulse el botón que nombra su propia cartera.',
      keyEnough:
        'En esta tienda basta una clave para cambiar la cartera. Quien lo hizo con una clave robada puede repetirlo: {revoke} y haga que los propietarios confirmen los cambios, más abajo.',
      revoke: 'revoque esa clave',
      before: 'Antes: {address}',
      undone: 'deshecho el {time}',
      cancelOther: 'Cancelar los pagos abiertos creados desde entonces que van a otra cartera',
      cancelIt: 'Cancelar los pagos abiertos creados desde entonces que van a ella',
      goBack: 'Volver a {address}',
      stopUsing: 'Dejar de usarla',
      who: 'Quién cambia la cartera',
      whoLabel: 'Para cobrar los pagos nuevos en otra cartera',
      choices: { member: 'Una clave lo pide, un propietario lo confirma aquí', key: 'Basta una clave' },
      save: 'Guardar',
      look: 'Ver las carteras',
      known: 'Ya lo sé',
      toUse: 'Cobrar en {address}: lo pidió {who}. Espera a un propietario.',
      toRetire: 'Dejar de usar {address}: lo pidió {who}. Espera a un propietario.',
      used: '{address} se puso en uso; lo pidió {who}.',
      retired: '{address} dejó de usarse; lo pidió {who}.',
      confirmedBy: 'Lo confirmó {who}.',
      undoneBy: 'Lo deshizo {who}.',
      actor: { key: 'la clave {id}', member: '{name}', operator: 'el operador {name}', system: 'Farthing' },
      namedKey: 'la clave «{name}» {id}',
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
      no_passkey:
        'Esto necesita una llave de acceso y aún no tiene ninguna. Abra un enlace para crearla: lo da un propietario, y dev lo muestra en su terminal.',
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
      change_over:
        'Este cambio ya no espera: se confirmó, se rechazó, se sustituyó o se retiró, o nadie lo confirmó a tiempo. Mire las carteras de nuevo.',
      undo_over: 'Este cambio no se puede deshacer: tiene más de 24 horas o ya se deshizo.',
      wallet_address:
        'Esta no es la dirección de una cartera que pueda cobrar aquí. Cópiela entera desde su cartera.',
      drained:
        'Aquí no se abren tiendas nuevas. Vuelva al sitio donde encontró esta página y empiece de nuevo.',
      sign_ups_max:
        'Hoy ya se ha registrado demasiada gente, aquí o desde su red. Inténtelo de nuevo mañana.',
      exports_max:
        'Hay demasiadas exportaciones en marcha: cada miembro puede tener una y la tienda dos. Espere a que termine una e inténtelo de nuevo.',
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
      rate_limited: 'Demasiadas solicitudes. Espere un minuto y vuelva a intentarlo.',
      unavailable: 'No se puede acceder a la consola en este momento. Inténtelo de nuevo enseguida.',
      wrong_cell: 'Esto pertenece a otra consola. Compruebe la dirección que abrió.',
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
